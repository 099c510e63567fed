package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	case (o.upgrade || o.keep) && !o.toTree():
		return cli.Usagef("--upgrade and --keep are about what an earlier render wrote: name its directory, -o DIR")
	case o.upgrade && o.keep:
		return cli.Usagef("--upgrade and --keep exclude each other: use one of them")
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

// allJobs says whether the input may be all jobs of a place: a tree may also be rendered file by file. Of what is not
// there it says so too, since reading it says what is wrong.
func allJobs(files []string) bool {
	if len(files) != 1 || isDirectory(files[0]) {
		return true
	}
	_, err := os.Stat(files[0])
	return errors.Is(err, fs.ErrNotExist) && files[0] != "-"
}

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
		if o.several() {
			dir = filepath.Join(dir, placeName(o.overlays[i]))
		}
		prune := o.prune || o.check && all // a folder that --prune would remove is a difference
		places[i] = tree.Place{
			Dir: dir, Bundles: out.Bundles, Rest: out.Rest, Prune: prune, Behind: out.Behind,
			Upgrade: o.upgrade, Keep: o.keep, Generators: o.generators.Names(),
		}
		if o.several() {
			places[i].Overlay = o.overlays[i]
		}
	}
	return places
}

// several says whether the directory holds a place for each overlay. One overlay alone has a place there, too, where
// several were rendered into it before.
func (o *renderOptions) several() bool {
	return len(o.overlays) > 1 || len(o.overlays) == 1 && tree.IsTop(o.output)
}

// top is the directory of several places.
func (o *renderOptions) top(all bool) tree.Top {
	return tree.Top{Dir: o.output, Prune: o.prune || o.check && all}
}

// writeTrees writes places, and notes what else is there.
func (o *renderOptions) writeTrees(ctx context.Context, s cli.Streams, places []tree.Place, all bool) error {
	var others []tree.Others
	var unnamed tree.Unnamed
	var err error
	if o.several() {
		others, unnamed, err = o.top(all).Write(ctx, places...)
	} else {
		others = make([]tree.Others, 1)
		others[0], err = tree.Write(ctx, places[0])
	}
	if err != nil {
		return err
	}
	var notes strings.Builder
	if unnamed.Completed {
		notes.WriteString(noteCompleted(o.output))
	}
	for i, other := range others {
		if other.Completed {
			notes.WriteString(noteCompleted(places[i].Dir))
		}
		notes.WriteString(noteRestarts(places[i].Dir, other))
		notes.WriteString(noteOthers(places[i], other, all))
	}
	if all {
		notes.WriteString(o.noteUnnamed(unnamed))
	}
	if _, err := io.WriteString(s.Err, notes.String()); err != nil {
		return fmt.Errorf("writing a note: %w", err)
	}
	return nil
}

// checkTrees prints how directories differ from what is rendered now. That they do is an error.
func (o *renderOptions) checkTrees(s cli.Streams, places []tree.Place, all bool) error {
	check, dir := tree.Check, o.output
	if o.several() {
		check = o.top(all).Check
	}
	differ, others, err := check(terminal{w: s.Out}, places...)
	var notes strings.Builder
	for i, other := range others {
		notes.WriteString(noteRestarts(places[i].Dir, other))
	}
	if _, err := io.WriteString(s.Err, notes.String()); err != nil {
		return fmt.Errorf("writing a note: %w", err)
	}
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

// noteRestarts names the jobs that this version of tegen renders differently, and files of another program.
func noteRestarts(dir string, o tree.Others) string {
	var note strings.Builder
	if len(o.Foreign) > 0 {
		fmt.Fprintf(&note, "%s: note: this program lacks the generators of files that it removes, %s; run the program "+
			"that has them to keep their objects\n", printable(dir), few(o.Foreign))
	}
	for _, all := range []struct {
		restarts []tree.Restart
		text     string
	}{
		{o.Held, "tegen changed from %s to %s, not the job: %s. Its folder stays as it is, since the workload " +
			"that this version renders would restart it. To render it with this version, use --upgrade"},
		{o.Moved, "tegen changed from %s to %s, and so did the input: %s. The workload is rendered with this version"},
	} {
		jobs := map[[2]string][]string{}
		for _, r := range all.restarts {
			key := [2]string{r.From, r.To}
			jobs[key] = append(jobs[key], r.Job)
		}
		for _, key := range slices.SortedFunc(maps.Keys(jobs), func(a, b [2]string) int {
			return strings.Compare(a[0], b[0])
		}) {
			fmt.Fprintf(&note, "%s: note: "+all.text+"\n", printable(dir), key[0], key[1], few(jobs[key]))
		}
	}
	return note.String()
}

func noteCompleted(dir string) string {
	return printable(dir) + ": note: completed an earlier render that was stopped while it changed files there\n"
}

// noteOthers names the folders of jobs that were not rendered this time: a removed job would go on being applied. A
// tree that is rendered file by file needs no note about the others.
func noteOthers(p tree.Place, o tree.Others, all bool) string {
	var note strings.Builder
	add := func(folders []string, format string) {
		if len(folders) > 0 {
			fmt.Fprintf(&note, "%s: note: "+format+"\n", printable(p.Dir), few(folders))
		}
	}
	removed, removedRest := ofJobs(o.Removed)
	kept, keptRest := ofJobs(o.Kept)
	switch {
	case p.Prune:
		add(removed, "removed what was rendered of %s")
		add(kept, "removed what was rendered of %s, and left what tegen did not write there")
	case all:
		add(kept, "it also holds what was rendered of %s, which goes on being applied: if the jobs are gone, "+
			"--prune removes it")
	}
	switch {
	case p.Prune:
		add(removedRest, "removed %s, of which the overlay holds nothing any more")
		add(keptRest, "removed what was rendered into %s, and left what tegen did not write there")
	default: // an overlay holds the same whichever jobs are rendered
		add(removedRest, "removed %s: its objects are in the folders of jobs now")
		add(keptRest, "it also holds %s, of which the overlay holds nothing any more, and which goes on being "+
			"applied: --prune removes it")
	}
	return note.String()
}

// ofJobs tells the folders of jobs from that of an overlay.
func ofJobs(folders []string) (jobs, rest []string) {
	for _, folder := range folders {
		if folder == tree.RestFolder {
			rest = append(rest, folder)
		} else {
			jobs = append(jobs, folder)
		}
	}
	return jobs, rest
}

// noteUnnamed names the places of overlays that were not named this time.
func (o *renderOptions) noteUnnamed(u tree.Unnamed) string {
	var note strings.Builder
	for _, name := range u.Removed {
		fmt.Fprintf(&note, "%s: note: removed what was rendered there: no overlay of that name is named or there\n",
			printable(filepath.Join(o.output, name)))
	}
	for _, name := range u.Gone {
		fmt.Fprintf(&note, "%s: note: no overlay of that name is named or there, and what was rendered there goes on "+
			"being applied: --prune removes it\n", printable(filepath.Join(o.output, name)))
	}
	for _, kept := range u.Kept {
		dir := printable(filepath.Join(o.output, kept.Name))
		if kept.Overlay == "" {
			fmt.Fprintf(&note, "%s: note: it is as it was, since its overlay is not named and may be somewhere: name "+
				"all overlays, or remove the directory\n", dir)
			continue
		}
		fmt.Fprintf(&note, "%s: note: it is as it was, since --overlay %s is missing; --prune removes it once that "+
			"overlay is gone\n", dir, printable(kept.Overlay))
	}
	return note.String()
}
