package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/tree"
)

// toTree says whether the result goes to a directory.
func (o *renderOptions) toTree() bool { return o.output != "-" }

// validate refuses a command line whose parts do not go together.
func (o *renderOptions) validate(files []string) error {
	if err := checkDirectory(o.output); err != nil {
		return err
	}
	switch {
	case o.prune && !o.toTree():
		return cli.Usagef("--prune needs the directory to remove folders from: -o DIR")
	case o.check && !o.toTree():
		return cli.Usagef("--check needs the directory to compare with: -o DIR")
	case len(o.overlays) > 1 && !o.toTree():
		return cli.Usagef("several overlays need a directory, in which each has a folder: -o DIR")
	case o.prune && !allJobs(files):
		return cli.Usagef("--prune with one file would remove the folders of all other jobs: name the directory that " +
			"holds the files of all jobs")
	}
	for i, overlay := range o.overlays {
		for _, other := range o.overlays[:i] {
			if strings.EqualFold(placeName(other), placeName(overlay)) {
				return cli.Usagef("--overlay %s and --overlay %s would both be written to %s: render them one by one, "+
					"to directories of different names", printable(other), printable(overlay),
					printable(filepath.Join(o.output, placeName(overlay))))
			}
		}
	}
	for _, input := range files {
		if o.toTree() && isDirectory(input) && below(input, o.output) {
			return cli.Usagef("-o %s is in %s, where all files are read as jobs: name another directory of jobs, or "+
				"another -o", printable(o.output), printable(input))
		}
	}
	return nil
}

// allJobs says whether the input may be all jobs of a place: a tree may also be rendered file by file.
func allJobs(files []string) bool { return len(files) != 1 || isDirectory(files[0]) }

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// below says whether a path leads into a directory, or to the directory itself.
func below(dir, path string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(path))
	return err == nil && filepath.IsLocal(rel)
}

// places are the directories of a render: the named one, or one below it for each of several overlays.
func (o *renderOptions) places(outs []*krm.Output, all bool) []tree.Place {
	places := make([]tree.Place, len(outs))
	for i, out := range outs {
		dir := o.output
		if len(outs) > 1 {
			dir = filepath.Join(dir, placeName(o.overlays[i]))
		}
		prune := o.prune || o.check && all // a folder that --prune would remove is a difference
		places[i] = tree.Place{Dir: dir, Bundles: out.Bundles, Rest: out.Rest, Prune: prune}
	}
	return places
}

// checkTrees prints how directories differ from what is rendered now. That they do is an error.
func checkTrees(s cli.Streams, dir string, places []tree.Place) error {
	differ, err := tree.Check(terminal{s.Out}, places...)
	switch {
	case err != nil:
		return err
	case differ == 1:
		return fmt.Errorf("%s: 1 file is not as it is rendered now: render again without --check", printable(dir))
	case differ > 1:
		return fmt.Errorf("%s: %d files are not as they are rendered now: render again without --check",
			printable(dir), differ)
	}
	return nil
}

// noteOthers names the folders of jobs that were not rendered this time: a removed job would go on being applied. A
// tree that is rendered file by file needs no note about the others.
func noteOthers(s cli.Streams, p tree.Place, o tree.Others, all bool) error {
	var note strings.Builder
	add := func(folders []string, format string) {
		if len(folders) > 0 {
			fmt.Fprintf(&note, "%s: note: "+format+"\n", printable(p.Dir), few(folders))
		}
	}
	switch {
	case p.Prune:
		add(o.Removed, "removed what was rendered of %s")
		add(o.Kept, "removed what was rendered of %s, and left what tegen did not write there")
	case all:
		add(o.Kept, "it also holds what was rendered of %s, which goes on being applied: if the jobs are gone, "+
			"--prune removes it")
	}
	_, err := fmt.Fprint(s.Err, note.String())
	return err
}
