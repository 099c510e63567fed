package runbook

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/plan"
)

// theCluster makes the cluster, and shows the nodes that may train.
func theCluster(b *book) *section {
	s, c := &section{title: "Cluster"}, b.Cluster
	switch {
	case c == nil:
		s.text("kubectl speaks to the cluster that is named here; where it is another, change to it now.")
		s.run("kubectl", "config", "current-context")
	case c.tool == "":
		s.text("%s is for no program that tegen knows (eksctl, kind): make the cluster as that one says. "+
			"kubectl speaks to the cluster that is named here.", code(c.file))
		s.run("kubectl", "config", "current-context")
	case c.tool == eksctl:
		s.fillIn(c)
		s.text("It takes some twenty minutes. Where the cluster exists, the second command alone lets kubectl speak " +
			"to it.")
		s.run(eksctl, "create", "cluster", "-f", file(c.file))
		s.run(c.args("utils", "write-kubeconfig")...)
	default:
		s.fillIn(c)
		s.text("Where the cluster exists, the second command alone lets kubectl speak to it.")
		s.run(kind, "create", "cluster", "--config", file(c.file))
		s.run(kind, "export", "kubeconfig", "--name", c.name)
		if images := b.images(); len(images) > 0 {
			s.text("Its nodes take images that are in no registry from docker: build them first.")
			for _, image := range images {
				s.run(kind, "load", "docker-image", image, "--name", c.name)
			}
		}
	}
	s.nodes(b)
	return s
}

// fillIn says what the cluster's file still leaves open.
func (s *section) fillIn(c *Cluster) {
	var open []string
	for _, p := range c.placeholders {
		open = append(open, code(p))
	}
	if len(open) > 0 {
		s.text("First put your own in the place of %s in %s.", strings.Join(open, ", "), code(c.file))
	}
}

// nodes shows the nodes that training pods select, with what they have of what pods request beside CPU and memory.
func (s *section) nodes(b *book) {
	workers := b.workers()
	if workers == nil {
		return
	}
	words := []string{"kubectl", "get", "nodes"}
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(workers.Template().Spec.NodeSelector)) {
		labels = append(labels, k+"="+workers.Template().Spec.NodeSelector[k])
	}
	if len(labels) > 0 {
		words = append(words, "-l", strings.Join(labels, ","))
	}
	columns := "custom-columns=NAME:.metadata.name"
	for _, name := range slices.Sorted(maps.Keys(workers.Each)) {
		if strings.Contains(string(name), "/") {
			columns += "," + strings.ToUpper(string(name)) + ":.status.allocatable." +
				strings.ReplaceAll(string(name), ".", `\.`)
		}
	}
	if strings.Contains(columns, ",") {
		words = append(words, "-o", columns)
	}
	s.text("Nodes that may train:")
	s.run(words...)
}

// companions installs what must run beside Kubernetes, less what the cluster is made with.
func companions(b *book) *section {
	s := &section{title: "Companions"}
	s.installed(b)
	for _, c := range b.Controllers {
		s.controller(b, &c)
	}
	if len(s.parts) == 0 {
		return nil
	}
	return s
}

var (
	createAddon = lazy.Regexp(`^eksctl create addon .*--name (\S+)`)
	openWord    = lazy.Regexp(`\b[A-Z]{5,}\b`)
)

// controller installs one, where the cluster does not come with it, and shows that it is there.
func (s *section) controller(b *book, c *plan.Controller) {
	name := strings.TrimSpace(c.Name + " " + c.Since)
	install := slices.DeleteFunc(slices.Clone(c.Install), func(command string) bool {
		m := createAddon().FindStringSubmatch(command)
		return m != nil && b.Cluster.has(m[1])
	})
	switch {
	case len(install) < len(c.Install):
		s.text("%s comes with the cluster.", name)
	case len(c.Requires) > 0:
		s.text("%s, by settings of Kubernetes that no command makes: %s.", name, strings.Join(c.Requires, "; "))
	case c.Note != "":
		s.text("%s, where it is not there yet; %s.", name, c.Note)
	default:
		s.text("%s, where it is not there yet:", name)
	}
	for _, command := range install {
		if b.Cluster != nil && b.Cluster.tool == eksctl {
			command = strings.ReplaceAll(command, " CLUSTER ", " "+b.Cluster.name+" --region "+b.Cluster.region+" ")
		}
		if word := openWord().FindString(command); word != "" {
			s.shell(": \"${" + word + ":?first say " + word + "=...}\"")
			command = strings.ReplaceAll(command, " "+word+" ", ` "$`+word+`" `)
		}
		if strings.Contains(command, "cd ") {
			command = "(" + command + ")" // or all that follows would run in another directory
		}
		s.shell(command)
	}
	s.shell(c.Check)
}

// prerequisites are the namespace and what the job names without making it.
func prerequisites(b *book) *section {
	s := &section{title: "What must exist"}
	if !b.holds("Namespace") && b.Namespace != corev1.NamespaceDefault {
		s.text("The namespace; where it exists, nothing changes.")
		s.pipe([]string{"kubectl", "create", "namespace", b.Namespace, "--dry-run=client", "-o", "yaml"},
			[]string{"kubectl", "apply", "--server-side", "-f", "-"})
	}
	var names []string
	for _, expected := range b.Expects {
		kind, name, _ := strings.Cut(expected, "/")
		kind, group, _ := strings.Cut(kind, ".")
		names = append(names, resource(group, kind)+"/"+name)
	}
	if len(names) > 0 {
		s.text("What the job names and does not make itself. What is not found here holds its pods back.")
		s.run(b.kubectl("get", names...)...)
	}
	if len(s.parts) == 0 {
		return nil
	}
	return s
}
