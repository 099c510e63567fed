package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/gitops"
	"github.com/tegen-dev/tegen/internal/tree"
)

const gitopsLong = `gitops prints the objects by which Argo CD or Flux reconciles a tree of rendered jobs,
as 'tegen render -o' writes it. Each job is an Application or a Kustomization of its own: what
is wrong with one stops no other. It talks to no cluster and to no repository.`

func newGitOpsCmd(s cli.Streams, set generators.Set) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gitops",
		Short: "Render what Argo CD or Flux reconciles a tree of jobs by",
		Long:  gitopsLong,
		Example: "  tegen gitops argocd rendered/eks --repo https://git.example/team/jobs | kubectl apply -f -\n" +
			"  tegen gitops flux rendered/eks --repo https://git.example/team/jobs > clusters/eks/jobs.yaml",
		Args: cli.OneOf("controller"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGitOpsArgoCDCmd(s, set), newGitOpsFluxCmd(s))
	return cmd
}

// addTreeFlags adds the flags that both controllers share. The directory that is named is the path in the repository
// too, unless --path says otherwise.
func addTreeFlags(cmd *cobra.Command, o *gitops.Options, controller string) {
	o.OnRemoval = gitops.Keep
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "repo", "", "address of the git repository that holds TREE, or oci://... as 'tegen "+
		"publish' was given it")
	flags.StringVar(&o.Revision, "revision", "", "branch, refs/tags/TAG or full commit (default main), or tag or "+
		"digest of an artifact that --repo names without one")
	flags.StringVar(&o.Path, "path", "", "TREE in the repository (default: TREE), or in the artifact (default: its "+
		"root)")
	flags.StringVar(&o.Name, "name", "", "name of the objects, to which a job's name is added (default: the last part "+
		"of TREE)")
	flags.StringVar(&o.Namespace, "namespace", controller, "namespace of the objects")
	flags.StringVar((*string)(&o.OnRemoval), "on-removal", string(gitops.Keep), "keep or delete a job's objects when "+
		"its Application or Kustomization goes")
	complete(cmd, "on-removal", string(gitops.Keep), string(gitops.Delete))
}

// oneTree is the argument of commands that read a tree.
func oneTree(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return cli.Usagef("%s needs the folder that 'tegen render -o' wrote, such as rendered/eks", cmd.CommandPath())
	case 1:
		return nil
	}
	return cli.Usagef("%s takes one folder, which holds a folder for each job, not %d", cmd.CommandPath(), len(args))
}

// fillIn sets what was not said from the name of the tree.
func fillIn(o *gitops.Options, tree string) {
	if o.Path == "" && o.IsOCI() {
		o.Path = "."
	}
	if o.Path == "" {
		o.Path = filepath.ToSlash(filepath.Clean(tree))
	}
	if o.Name == "" {
		o.Name = path.Base(filepath.ToSlash(filepath.Clean(tree)))
	}
}

// openFolder opens a folder to be read.
func openFolder(dir, want string) (fs.FS, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Err: errors.New("it is a file: name " + want)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", printable(dir), errors.Unwrap(err))
	}
	return os.DirFS(dir), nil
}

// readFolders reads the folders of a tree.
func readFolders(dir string) ([]gitops.Folder, error) {
	folders, err := openFolder(dir, "the folder that 'tegen render -o' wrote")
	if err != nil {
		return nil, err
	}
	if tree.IsTop(dir) {
		return nil, tree.NotOnePlace(printable(dir))
	}
	if err := tree.Unfinished(dir); err != nil {
		return nil, err
	}
	return gitops.ReadTree(folders, printable(dir))
}

// printObjects writes all or nothing, after the notes.
func printObjects(s cli.Streams, objects []runtime.Object, notes []string) error {
	slices.Sort(notes)
	for _, note := range notes {
		if _, err := fmt.Fprintln(s.Err, "note: "+note); err != nil {
			return fmt.Errorf("writing a note: %w", err)
		}
	}
	return writeObjects(s, objects)
}
