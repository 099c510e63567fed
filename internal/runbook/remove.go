package runbook

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/tree"
)

// remove takes the job away, what stays by itself, and the cluster. What git no longer has a reconciler forgets, and by
// default leaves as it is.
func remove(b *book) *section {
	s := &section{title: "Clean up"}
	if r := reconcilers[b.With]; r != nil {
		b.leave(s)
		s.forgotten(b)
		s.text("Its objects stay, unless `tegen gitops` was told `--on-removal delete`. They go by their label:")
	} else {
		s.text("The job:")
	}
	b.deleteJob(s)
	if kept := b.kept(); len(kept) > 0 {
		s.text("Its data stays. Only when nobody needs it any more:")
		s.run(b.kubectl("delete", kept...)...)
	}
	if c := b.Cluster; c != nil && c.tool != "" {
		s.text("The cluster, with all other jobs in it:")
		if c.tool == eksctl {
			s.run(eksctl, "delete", "cluster", "-f", file(c.file))
		} else {
			s.run(kind, "delete", "cluster", "--name", c.name)
		}
	}
	return s
}

// leave takes the job out of git: its folder, and with a render of all that are left its line of the inventory; of
// those no folder is added that was not there. What git has tells which job is the last one: a directory of jobs holds
// other files too, and jobs that were never committed.
func (b *book) leave(s *section) {
	folder, all := file(b.Tree), b.over(b.All, "render", "-o", file(b.Tree), "--prune")
	lastOne := "git rm -r " + quote(folder)
	ofJob := []string{"git", "rm", "-r", file(path.Join(b.Tree, b.Name))}
	switch {
	case b.Alone != "" && b.IsAll && len(b.All) == 1:
		s.text("The job leaves git, and the inventory with a render of all other jobs; with the last one, the tree.")
		s.run("git", "rm", file(b.Alone))
		s.run(ofJob...)
		render := command{pipe: [][]string{all}}
		add := command{pipe: [][]string{{"git", "add", "-u", folder}}}
		s.shell(b.ifOthers(render.line()+" && "+add.line(), lastOne))
	case b.IsAll:
		s.text("First take the job out of %s. A render of all other jobs removes its folder; where this is the last "+
			"one, %s takes the place of `tegen render` and `git add`.", code(b.source()), code(lastOne))
		s.run(all...)
		s.run(append([]string{"git", "add", "-u"}, b.tracked()...)...)
	default:
		s.text("First take the job out of %s. `tegen-inventory.txt` still lists its folder then: before the commit, "+
			"render some other job of the tree again, or with the last one %s.", code(b.source()), code(lastOne))
		s.run(ofJob...)
		s.run(append([]string{"git", "add", "-u"}, b.tracked()...)...)
	}
	s.commit("Remove " + b.Name)
	if b.OCI != "" {
		publish := command{pipe: [][]string{b.publish()}}
		s.shell(b.ifOthers(publish.line(), ""))
	}
}

// ifOthers does one thing where git has the folder of another job, and else another.
func (b *book) ifOthers(then, otherwise string) string {
	find := []string{"git", "ls-files", file(path.Join(b.Tree, "*/kustomization.yaml"))}
	if b.Overlay != "" {
		find = append(find, ":!"+path.Join(b.Tree, tree.RestFolder))
	}
	others := command{pipe: [][]string{find, {"grep", "-q", "."}}}
	if otherwise != "" {
		then += "; else " + otherwise
	}
	return "if " + others.line() + "; then " + then + "; fi"
}

// deleteJob deletes by label what has it, each kind that the job has; what is in no namespace by two.
func (b *book) deleteJob(s *section) {
	var inside, outside []string
	for _, obj := range b.objects {
		m, isObject := obj.(metav1.Object)
		name, _, _ := strings.Cut(nameOf(obj), "/")
		switch {
		case !isObject || m.GetLabels()[names.LabelJob] == "":
		case m.GetNamespace() == "" && !slices.Contains(outside, name):
			outside = append(outside, name)
		case m.GetNamespace() != "" && !slices.Contains(inside, name):
			inside = append(inside, name)
		}
	}
	if len(inside) > 0 {
		s.run(b.kubectl("delete", strings.Join(inside, ","), "-l", b.Selector)...)
	}
	if len(outside) > 0 {
		s.run("kubectl", "delete", strings.Join(outside, ","), "-l",
			b.Selector+","+names.LabelNamespace+"="+b.Namespace)
	}
}

// kept are the objects that outlive the job, but for the Namespace, in which others may live.
func (b *book) kept() (kept []string) {
	for _, obj := range b.objects {
		m, isObject := obj.(metav1.Object)
		if _, isNamespace := obj.(*corev1.Namespace); isObject && !isNamespace && m.GetLabels()[names.LabelJob] == "" {
			kept = append(kept, nameOf(obj))
		}
	}
	return kept
}
