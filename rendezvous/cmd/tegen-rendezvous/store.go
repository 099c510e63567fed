package main

import (
	"strconv"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// storeCommand is what serve starts for its data. It is none of the commands for people.
const storeCommand = "store"

func newStoreCmd(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:    storeCommand + " DIRECTORY SOCKET QUOTA",
		Short:  "Keep the data of serve, which starts this",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			quota, err := strconv.ParseInt(args[2], 10, 64)
			if err != nil {
				return cli.Usagef("reading the quota: %w", err)
			}
			encoding := zap.NewProductionEncoderConfig()
			log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(s.Err)),
				zap.WarnLevel))
			return store.Main(store.Embedded{Dir: args[0], Listen: args[1], Quota: quota, Log: log}, s.In, s.Out)
		},
	}
}
