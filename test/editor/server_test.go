package editor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// patience is what an answer may take on a machine that does other things too.
const patience = 2 * time.Minute

// server is a running yaml-language-server, and what it said of open files.
type server struct {
	conn   *jsonrpc2.Conn
	folder string // of the workspace, with the schemas in it
	stderr bytes.Buffer

	configure chan struct{} // closed when it has its settings
	once      sync.Once
	settings  map[string]any

	mu    sync.Mutex
	said  map[string][]diagnostic
	spoke *sync.Cond
}

// Of the protocol, what the tests read.
type (
	position   struct{ Line, Character int }
	span       struct{ Start, End position }
	diagnostic struct {
		Range   span
		Message string
	}
	completion struct {
		Label, InsertText string
		Documentation     markup
	}
	markup struct{ Value string }
)

// UnmarshalJSON takes a plain string too, which is the other form of a documentation.
func (m *markup) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		return json.Unmarshal(text, &m.Value)
	}
	var object struct{ Value string }
	err := json.Unmarshal(text, &object)
	m.Value = object.Value
	return err
}

// start runs the language server in a workspace, with what its setting "yaml" holds.
func start(t *testing.T, folder string, yaml map[string]any) *server {
	t.Helper()
	modules := install(t)
	guard, err := filepath.Abs("no-network.cjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // a test's own ends before its cleanups
	cmd := exec.CommandContext(ctx, "node", "--require", guard,
		filepath.Join(modules, "yaml-language-server/bin/yaml-language-server"), "--stdio")
	cmd.Dir = folder
	s := &server{
		folder: folder, configure: make(chan struct{}), said: map[string][]diagnostic{},
		settings: map[string]any{
			"schemaStore": map[string]any{"enable": false}, "kubernetesCRDStore": map[string]any{"enable": false},
			"validate": true, "hover": true, "completion": true,
		},
	}
	for name, value := range yaml {
		s.settings[name] = value
	}
	s.spoke = sync.NewCond(&s.mu)
	cmd.Stderr = &s.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stream := jsonrpc2.NewBufferedStream(pipes{out, in}, jsonrpc2.VSCodeObjectCodec{})
	s.conn = jsonrpc2.NewConn(ctx, stream, jsonrpc2.HandlerWithError(s.handle))
	t.Cleanup(func() { s.stop(t, cmd); cancel() })
	s.initialize(t)
	return s
}

// pipes are both directions of the server's standard streams.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

func (s *server) initialize(t *testing.T) {
	t.Helper()
	markdown := map[string]any{"contentFormat": []string{"markdown"}}
	s.call(t, "initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": fileURI(s.folder),
		"workspaceFolders": []any{map[string]any{"uri": fileURI(s.folder), "name": "jobs"}},
		"capabilities": map[string]any{
			"workspace": map[string]any{"configuration": true, "workspaceFolders": true},
			"textDocument": map[string]any{
				"hover": markdown, "completion": map[string]any{"completionItem": map[string]any{
					"documentationFormat": []string{"markdown"},
				}},
			},
		},
	}, nil)
	s.notify(t, "initialized", map[string]any{})
	select {
	case <-s.configure:
	case <-time.After(patience):
		t.Fatal("the server did not ask for its settings")
	}
}

// stop ends the server as an editor does. One that was cut off, or that asked for a network, has said why.
func (s *server) stop(t *testing.T, cmd *exec.Cmd) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	err := s.conn.Call(ctx, "shutdown", nil, nil)
	err = errors.Join(err, s.conn.Notify(ctx, "exit", nil), cmd.Wait())
	if err != nil || s.stderr.Len() > 0 {
		t.Errorf("the server ended with %v:\n%s", err, s.stderr.String())
	}
}

// handle answers what the server asks, and keeps what it says of files.
func (s *server) handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
	var params struct {
		URI         string
		Diagnostics []diagnostic
		Items       []struct{ Section string }
	}
	if r.Params != nil {
		if err := json.Unmarshal(*r.Params, &params); err != nil && r.Method != "telemetry/event" {
			return nil, err
		}
	}
	switch r.Method {
	case "workspace/configuration":
		answers := make([]any, len(params.Items))
		for i, item := range params.Items {
			if item.Section == "yaml" {
				answers[i] = s.settings
			}
		}
		defer s.once.Do(func() { close(s.configure) })
		return answers, nil
	case "textDocument/publishDiagnostics":
		s.mu.Lock()
		s.said[params.URI] = append([]diagnostic{}, params.Diagnostics...)
		s.mu.Unlock()
		s.spoke.Broadcast()
	}
	return nil, nil
}

func (s *server) call(t *testing.T, method string, params, result any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.conn.Call(ctx, method, params, result); err != nil {
		t.Fatalf("%s: %v\n%s", method, err, s.stderr.String())
	}
}

func (s *server) notify(t *testing.T, method string, params any) {
	t.Helper()
	if err := s.conn.Notify(t.Context(), method, params); err != nil {
		t.Fatalf("%s: %v\n%s", method, err, s.stderr.String())
	}
}

// open shows the server a file of the workspace, which need not be on the disk.
func (s *server) open(t *testing.T, name, text string) (uri string) {
	t.Helper()
	uri = fileURI(filepath.Join(s.folder, name))
	s.notify(t, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uri, "languageId": "yaml", "version": 1, "text": text,
	}})
	return uri
}

// diagnostics waits for what the server says of an open file.
func (s *server) diagnostics(t *testing.T, uri string) []diagnostic {
	t.Helper()
	late := time.AfterFunc(patience, s.spoke.Broadcast)
	defer late.Stop()
	deadline := time.Now().Add(patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if said, ok := s.said[uri]; ok {
			return said
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("the server says nothing of %s\n%s", uri, s.stderr.String())
		}
		s.spoke.Wait()
	}
}

// at asks something about the place of the | in a text, which is a file of its own.
func (s *server) at(t *testing.T, method, text string, result any) {
	t.Helper()
	before, after, ok := strings.Cut(text, "|")
	if !ok {
		t.Fatal("no | is in the text")
	}
	uri := s.open(t, url.PathEscape(t.Name())+".yaml", before+after)
	line := strings.Count(before, "\n")
	s.call(t, method, map[string]any{
		"textDocument": map[string]any{"uri": uri},
		"position":     map[string]any{"line": line, "character": len(before) - strings.LastIndex(before, "\n") - 1},
	}, result)
}

func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}
