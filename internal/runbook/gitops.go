package runbook

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// reconciler is what Argo CD and Flux differ in.
type reconciler struct {
	name       string
	install    [][]string
	kind       string // of its object for one job, as kubectl takes it
	namespace  string // of that
	registered string // when 'tegen gitops' has to be run, for a folder in git
	login      string // how it reads what not everybody may read
}

const eachJob = " is told of each job in the folder: where one comes or goes, again."

var reconcilers = map[string]*reconciler{
	ArgoCD: {
		name: "Argo CD",
		install: [][]string{
			{"kubectl", "create", "namespace", "argocd"},
			{
				"kubectl", "apply", "--server-side", "-n", "argocd", "-f", // the release that was held against jobs
				"https://raw.githubusercontent.com/argoproj/argo-cd/v3.2.11/manifests/install.yaml",
			},
			{"kubectl", "get", "deployment", "-n", "argocd", "argocd-repo-server"},
		},
		kind: "application.argoproj.io", namespace: "argocd",
		registered: "Argo CD is told of the folder once, and finds by itself what else is in it.",
		login: "It reads a private repository once a Secret with the label " +
			"`argocd.argoproj.io/secret-type: repository`, or `argocd repo add`, says how.",
	},
	Flux: {
		name:    "Flux",
		install: [][]string{{"flux", "install"}, {"flux", "check"}},
		kind:    "kustomization.kustomize.toolkit.fluxcd.io", namespace: "flux-system",
		registered: "Flux" + eachJob,
		login: "A private repository needs a Secret, as `flux create secret git` makes it: say SECRET_REF=, its " +
			"name.",
	},
}

// installed puts the reconciler of the runbook into the cluster.
func (s *section) installed(b *book) {
	r := reconcilers[b.With]
	if r == nil {
		return
	}
	s.text("%s, where it is not there yet:", r.name)
	for _, words := range r.install {
		s.run(words...)
	}
	if b.With == ArgoCD { // which knows no health of most kinds
		s.pipe([]string{"tegen", "gitops", "argocd", "config"},
			[]string{"kubectl", "apply", "--server-side", "-f", "-"})
	}
}

// register has a reconciler take jobs from the folder.
func (s *section) register(b *book) {
	r := reconcilers[b.With]
	if r == nil {
		return
	}
	text, login := r.registered, r.login
	if b.OCI != "" { // of which no reconciler lists the folders
		text, login = r.name+eachJob, strings.Replace(login, "secret git", "secret oci", 1)
	}
	s.text("%s %s", text, login)
	if b.OCI+b.Repo == "" {
		s.shell(`: "${REPO:?first say REPO=, the address of this repository}"`)
	}
	s.shell(b.registration())
}

// registration makes the reconciler's objects of the folder, and applies them.
func (b *book) registration() string {
	repo := `"$REPO"`
	if told := b.OCI + b.Repo; told != "" {
		repo = quote(told)
	}
	command := "tegen gitops " + b.With + " " + quote(file(b.Tree)) + " --repo " + repo
	if !isTreeName(path.Base(b.Tree)) {
		command += " --name " + treeName(b.Tree)
	}
	if b.With == Flux {
		command += ` ${SECRET_REF:+--secret-ref="$SECRET_REF"}`
	}
	return command + " | kubectl apply --server-side -f -"
}

// object is what the reconciler has of the job, in its own namespace.
func (r *reconciler) object(b *book) []string {
	return []string{"-n", r.namespace, r.kind + "/" + treeName(b.Tree) + "-" + b.Name}
}

// found has Argo CD make the job's Application now. Of git an ApplicationSet has a copy that is some minutes old, until
// it is told to look again.
func (s *section) found(b *book) {
	if b.With == ArgoCD {
		s.lookAgain(b)
		s.run(append([]string{"kubectl", "wait", "--for=create", "--timeout=5m"}, reconcilers[ArgoCD].object(b)...)...)
	}
}

func (s *section) lookAgain(b *book) {
	if b.OCI == "" {
		s.run(append(append([]string{"kubectl", "annotate"}, applicationSet(b)...),
			"argocd.argoproj.io/application-set-refresh=true", "--overwrite")...)
	}
}

// forgotten has the reconciler forget a job that left git. An Application goes by its ApplicationSet, which would make
// it anew, and with it the job.
func (s *section) forgotten(b *book) {
	object := reconcilers[b.With].object(b)
	if b.With != ArgoCD {
		s.run(append([]string{"kubectl", "delete"}, append(object, "--ignore-not-found")...)...)
		return
	}
	s.lookAgain(b)
	if b.OCI != "" {
		none := command{pipe: [][]string{append([]string{"kubectl", "delete"}, applicationSet(b)...)}}
		s.shell(b.ifOthers(b.registration(), none.line()))
	}
	s.run(append([]string{"kubectl", "wait", "--for=delete", "--timeout=5m"}, object...)...)
}

// applicationSet is what makes Applications of the folder.
func applicationSet(b *book) []string {
	return []string{"-n", reconcilers[ArgoCD].namespace, "applicationset.argoproj.io/" + treeName(b.Tree)}
}

// reconcile has the reconciler look at git now, and not in some minutes.
func (s *section) reconcile(b *book) {
	switch r := reconcilers[b.With]; b.With {
	case Flux:
		s.run("flux", "reconcile", "kustomization", treeName(b.Tree)+"-"+b.Name, "-n", r.namespace, "--with-source")
	case ArgoCD:
		s.run(append(append([]string{"kubectl", "annotate"}, r.object(b)...), "argocd.argoproj.io/refresh=normal",
			"--overwrite")...)
	}
}

// synced shows how far the reconciler has come.
func (s *section) synced(b *book) {
	if r := reconcilers[b.With]; r != nil {
		s.run(append([]string{"kubectl", "get"}, r.object(b)...)...)
	}
}

// treeName is how 'tegen gitops' names its objects: after the folder, where that can be a name.
func treeName(tree string) string {
	if name := path.Base(tree); isTreeName(name) {
		return name
	}
	return "training"
}

// isTreeName says whether a folder's name can be that of objects, to which a job's is added.
func isTreeName(name string) bool {
	return len(validation.IsDNS1123Label(name)) == 0 && len(name) <= 22
}
