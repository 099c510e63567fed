package daemon

import (
	"log/slog"
	"testing"

	"go.uber.org/zap"
)

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
