// Package install is the way from a command line to the objects of tegen-scheduler: flags and a configuration file go
// in, checked, and the objects that generators.Install makes of them come out, or every mistake does. A configuration
// that is accepted elects one leader, by a Lease that the rendered role is for.
package install

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/scheduler/config"
	"github.com/tegen-dev/tegen/schema"
)

// Options are the flags of an installation.
type Options struct {
	Namespace string
	Image     string
	Replicas  int32
}

// Defaults are the flags' default values; version is that of the program.
func Defaults(version string) Options {
	return Options{Namespace: config.Namespace, Image: releasedImage(version), Replicas: 2}
}

var release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// releasedImage is the scheduler's image of the same release; "" for a program that was built between releases: its
// scheduler is not published.
func releasedImage(version string) string {
	if !release.MatchString(version) {
		return ""
	}
	return "ghcr.io/tegen-dev/" + names.Scheduler + ":" + version
}

// maxReplicas is a bound against slips: one replica schedules, all others hold the same caches and wait.
const maxReplicas = 10

// Check returns every mistake in the flags, a line each.
func (o Options) Check() error {
	var errs []error
	if wrong := validation.IsDNS1123Label(o.Namespace); len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--namespace: must be a name of lower case letters, digits and '-', of 63 "+
			"characters at most, not %q", o.Namespace))
	}
	if o.Image == "" {
		errs = append(errs, errors.New("--image: this build of tegen is no release, so no published image belongs to "+
			"it: build and push one with 'make push REGISTRY=<yours>', and name it here"))
	} else if err := schema.CheckImage(o.Image); err != nil {
		errs = append(errs, fmt.Errorf("--image: %w", err))
	}
	if o.Replicas < 1 || o.Replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("--replicas: must be from 1 to %d, not %d: one schedules, a second takes "+
			"over, more only wait", maxReplicas, o.Replicas))
	}
	return errors.Join(errs...)
}

// Scheduler returns the objects of tegen-scheduler. The options have been checked; file is a
// KubeSchedulerConfiguration, nil for the default one. Mistakes in it are schema.Errors.
func Scheduler(o Options, file *schema.Source) ([]runtime.Object, error) {
	i := &generators.Installation{Namespace: o.Namespace, Image: o.Image, Replicas: o.Replicas}
	if file == nil {
		file = &schema.Source{Name: "the default configuration", Data: []byte(config.Default(o.Namespace))}
	}
	lease, err := check(file, o.Namespace)
	if err != nil {
		return nil, err
	}
	i.Config, i.Lease = string(file.Data), lease
	objects := generators.Install(i)
	return objects, render.Broken(names.Scheduler+": ", refs.Check(objects))
}

// sorted puts the mistakes of one file in the order of its lines.
func sorted(errs schema.Errors) schema.Errors {
	slices.SortStableFunc(errs, func(a, b schema.Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
	return errs
}
