// Package args reads the args of plugins in a KubeSchedulerConfiguration. In goes what kube-scheduler hands to a
// plugin; a field that the plugin does not have is an error, where kube-scheduler's own decoder ignores it: a seed that
// is misspelt would be no seed, and nobody would be told.
package args

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Decode reads a plugin's args into a struct with JSON tags. Without args the struct stays as it is.
func Decode(configuration runtime.Object, into any) error {
	if configuration == nil {
		return nil
	}
	unknown, ok := configuration.(*runtime.Unknown)
	if !ok {
		return fmt.Errorf("they are a %T and not the text of a configuration file", configuration)
	}
	switch unknown.ContentType {
	case runtime.ContentTypeJSON, runtime.ContentTypeYAML, "":
	default:
		return errors.New("they are neither JSON nor YAML but " + unknown.ContentType)
	}
	if err := yaml.UnmarshalStrict(unknown.Raw, into); err != nil { // JSON is YAML
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}
