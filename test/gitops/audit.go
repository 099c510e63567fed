package gitops

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// auditPolicy notes the requests of the reconcilers alone.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:flux-system", "system:serviceaccounts:argocd"]
- level: None
`

// Request is one that a reconciler sent.
type Request struct {
	Verb      string
	Resource  string // with its subresource: jobs/status
	Namespace string
	Name      string
	DryRun    bool
	Code      int
	At        time.Time // when the API server had it
}

// Changes says whether the request could have changed an object.
func (r Request) Changes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !r.DryRun
	}
	return false
}

// Requests are all that a reconciler sent, in their order.
type Requests []Request

// In are those for objects of a namespace.
func (r Requests) In(namespace string) Requests {
	var in Requests
	for _, request := range r {
		if request.Namespace == namespace {
			in = append(in, request)
		}
	}
	return in
}

// Changing are those that could have changed an object.
func (r Requests) Changing() Requests {
	var changing Requests
	for _, request := range r {
		if request.Changes() {
			changing = append(changing, request)
		}
	}
	return changing
}

// requestsOf reads the audit log for the requests of accounts: NAMESPACE:NAME, or NAMESPACE: for all of one.
func requestsOf(log, accounts string) (Requests, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	var all Requests
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ObjectRef        struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus   struct{ Code int }

			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line may still be on its way
		}
		if !strings.HasPrefix(event.User.Username, "system:serviceaccount:"+accounts) {
			continue
		}
		r := Request{
			Verb: event.Verb, Resource: event.ObjectRef.Resource, Namespace: event.ObjectRef.Namespace,
			Name: event.ObjectRef.Name, DryRun: strings.Contains(event.RequestURI, "dryRun=All"),
			Code: event.ResponseStatus.Code, At: event.RequestReceivedTimestamp,
		}
		if event.ObjectRef.Subresource != "" {
			r.Resource += "/" + event.ObjectRef.Subresource
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

// residentMemory is what a process has in memory, in MiB.
func residentMemory(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kib, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			return n >> 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory of process %d: its status has no VmRSS", pid)
}
