package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// prefix of the variables that stand for flags.
const prefix = "TEGEN_RENDEZVOUS_"

// variable is what a flag is called in the environment.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that were not given from their variables. Others of the prefix are let through: a Service
// called tegen-rendezvous makes Kubernetes set TEGEN_RENDEZVOUS_PORT and more in every pod of the namespace.
func fromEnvironment(cmd *cobra.Command) error {
	var wrong error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := os.LookupEnv(variable(f.Name))
		if f.Changed || !ok || wrong != nil {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			wrong = usagef("%s: %w", variable(f.Name), err)
		}
	})
	return wrong
}
