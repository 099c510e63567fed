package daemon

import (
	"log/slog"
	"testing"

	"go.uber.org/zap"
)

// TestAlone: nobody else writes to an embedded store. Others may to an etcd, so that its keys are asked for anew.
func TestAlone(t *testing.T) {
	for _, o := range []Options{
		{Store: "embedded", DataDir: t.TempDir()},
		{Store: "etcd", Endpoints: []string{"http://etcd:2379"}},
	} {
		o.ListenClient = "127.0.0.1:0"
		c, err := o.Config(slog.New(slog.DiscardHandler), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if want := o.Store == "embedded"; c.Keys.Alone != want {
			t.Errorf("%s: alone %t, want %t", o.Store, c.Keys.Alone, want)
		}
	}
}

// TestLimitsOfTCPStore: what is under way on the TCPStore is bounded by the room that there is for keys and values.
func TestLimitsOfTCPStore(t *testing.T) {
	o := Options{Store: "embedded", DataDir: t.TempDir(), ListenC10d: "127.0.0.1:0", MaxBytes: 128 << 20}
	c, err := o.Config(slog.New(slog.DiscardHandler), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	const most = 65 << 20
	if l := c.TCPStore; l.Bytes != 128<<20 || l.RunBytes != 64<<20 || l.Partial > most || l.Unsent > most {
		t.Errorf("of 128 MiB one run may take %d, messages under way %d and replies %d", l.RunBytes, l.Partial,
			l.Unsent)
	}
}
