// Package install is the way from a command line to the objects of what tegen brings along: flags and a scheduler's
// configuration file go in, checked, and the objects that generators makes of them come out, or every mistake does. A
// configuration that is accepted elects one leader, by a Lease that the rendered role is for.
package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// Place is what every installation has.
type Place struct {
	Namespace       string
	Image           string
	CreateNamespace bool
	PodMonitor      bool
}

// Options are the flags of a scheduler's installation.
type Options struct {
	Place
	Replicas int32
}

// Defaults are the flags' default values.
func Defaults() Options {
	return Options{Place{Namespace, names.ReleasedScheduler, true, false}, 2}
}

// maxReplicas is a bound against slips: one replica schedules, all others hold the same caches and wait.
const maxReplicas = 10

// Check returns every mistake in the flags, a line each.
func (o Options) Check() error {
	errs := o.check()
	if o.Replicas < 1 || o.Replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("--replicas: must be from 1 to %d, not %d: one schedules, a second takes "+
			"over, more only wait", maxReplicas, o.Replicas))
	}
	return errors.Join(errs...)
}

func (p *Place) check() (errs []error) {
	if err := checkNamespace("--namespace", p.Namespace); err != nil {
		errs = append(errs, err)
	} else if p.CreateNamespace && p.Namespace != Namespace && job.IsSystemNamespace(p.Namespace) &&
		!generators.BuiltInNamespace(p.Namespace) {
		errs = append(errs, fmt.Errorf("--namespace: %s belongs to a controller, and its Pod Security "+
			"label would change, which can stop their pods: use another one, or add --create-namespace=false",
			p.Namespace))
	}
	if p.Image == "" {
		errs = append(errs, errors.New("--image: this build of tegen is not of a release's archive or image, so no "+
			"published image belongs to it: build and push one with 'make push REGISTRY=<yours>', and name it here"))
	} else if err := schema.CheckImage(p.Image); err != nil {
		errs = append(errs, fmt.Errorf("--image: %w", err))
	}
	return errs
}

func checkNamespace(flag, name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%s: must be a name of lower case letters, digits and '-', of 63 characters at most, not %q",
			flag, name)
	}
	return nil
}

// Scheduler returns the objects of tegen-scheduler. The options have been checked; file is a
// KubeSchedulerConfiguration, nil for the default one. Mistakes in it are schema.Errors.
func Scheduler(o Options, file *schema.Source) ([]runtime.Object, error) {
	i := &generators.Installation{
		Namespace: o.Namespace, Image: o.Image, Replicas: o.Replicas,
		NamespaceExists: !o.CreateNamespace, PodMonitor: o.PodMonitor,
	}
	if file == nil {
		file = &schema.Source{Name: "the default configuration", Data: []byte(defaultConfig(o.Namespace))}
	}
	lease, err := check(file, o.Namespace)
	if err != nil {
		return nil, err
	}
	i.Config, i.Lease = string(file.Data), lease
	objects := generators.Install(i)
	return objects, render.Judge(names.Scheduler, objects, nil)
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
