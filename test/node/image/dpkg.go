package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// record is what dpkg records of an installed package.
type record struct {
	name, version string
	query         string // the name as dpkg-query wants it, with the architecture where there can be several
	architecture  string
	depends       string // Pre-Depends and Depends
	provides      string
}

// recordFormat asks dpkg-query for the fields of a record and whether the package is installed.
const recordFormat = `${Package}\t${Version}\t${binary:Package}\t${Architecture}\t${Pre-Depends}, ` +
	`${Depends}\t${Provides}\t${db:Status-Status}\n`

// installed are the packages of this machine, of its own architecture.
func installed(ctx context.Context) ([]record, error) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return nil, fmt.Errorf("looking for Debian's packages: %w", err)
	}
	native, err := output(ctx, "dpkg", "--print-architecture")
	if err != nil {
		return nil, err
	}
	list, err := output(ctx, "dpkg-query", "--show", "--showformat="+recordFormat)
	if err != nil {
		return nil, err
	}
	return parseRecords(list, strings.TrimSpace(native)), nil
}

func parseRecords(list, native string) []record {
	var records []record
	for line := range strings.Lines(list) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 7 || fields[6] != "installed" || (fields[3] != native && fields[3] != "all") {
			continue
		}
		records = append(records, record{
			name: fields[0], version: fields[1], query: fields[2], architecture: fields[3], depends: fields[4],
			provides: fields[5],
		})
	}
	return records
}

// closure is what the wanted packages need, themselves included, by name. A package that is left out takes with it what
// only it needs. Of alternatives the first that is installed counts, as it does for apt.
func closure(records []record, wanted []string, leftOut map[string]bool) ([]record, error) {
	byName, providers := map[string]record{}, map[string][]string{}
	for _, r := range records {
		byName[r.name] = r
		for _, provided := range relations(r.provides) {
			providers[provided[0]] = append(providers[provided[0]], r.name)
		}
	}
	var missing []string
	for _, name := range wanted {
		if _, ok := byName[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("looking for Debian's packages: not installed: %s (test/node/setup.sh installs them)",
			strings.Join(missing, ", "))
	}
	found := map[string]bool{}
	for queue := slices.Clone(wanted); len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if found[name] || leftOut[name] {
			continue
		}
		found[name] = true
		for _, alternatives := range relations(byName[name].depends) {
			if one := choose(alternatives, byName, providers); one != "" {
				queue = append(queue, one)
			}
		}
	}
	var all []record
	for name := range found {
		all = append(all, byName[name])
	}
	slices.SortFunc(all, func(a, b record) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// choose is the installed package that satisfies a dependency, or none: then dpkg was forced, or the package is of
// another architecture.
func choose(alternatives []string, byName map[string]record, providers map[string][]string) string {
	for _, name := range alternatives {
		if _, ok := byName[name]; ok {
			return name
		}
		if providers[name] != nil {
			return slices.Min(providers[name])
		}
	}
	return ""
}

// relations splits a field such as "a (>= 1), b:any | c" into names: one list of alternatives for each comma.
func relations(field string) [][]string {
	var all [][]string
	for relation := range strings.SplitSeq(field, ",") {
		var names []string
		for alternative := range strings.SplitSeq(relation, "|") {
			name, _, _ := strings.Cut(strings.TrimSpace(alternative), " ")
			name, _, _ = strings.Cut(name, ":")
			name, _, _ = strings.Cut(name, "(")
			if name != "" {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			all = append(all, names)
		}
	}
	return all
}

// listed are the paths that packages brought, as their archives name them.
func listed(ctx context.Context, packages []record) ([]string, error) {
	args := []string{"--listfiles"}
	for _, p := range packages {
		args = append(args, p.query)
	}
	list, err := output(ctx, "dpkg-query", args...)
	if err != nil {
		return nil, err
	}
	var paths []string
	for line := range strings.Lines(list) {
		// Other lines are about diversions, or stand between packages.
		if strings.HasPrefix(line, "/") {
			paths = append(paths, strings.TrimSuffix(line, "\n"))
		}
	}
	return paths, nil
}

// output is what a command prints. It is asked for untranslated words.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
		}
		return "", fmt.Errorf("running %s %s: %w", name, args[0], err)
	}
	return string(out), nil
}
