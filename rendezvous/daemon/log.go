package daemon

import (
	"io"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logs are our own log, and that of etcd.
func (o Options) logs(w io.Writer, etcd zapcore.LevelEnabler) (*slog.Logger, *zap.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return nil, nil, usagef("--log-level: %w", err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey, encoding.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	encoding.EncodeLevel = zapcore.CapitalLevelEncoder
	options := &slog.HandlerOptions{Level: level}
	sink := zapcore.Lock(zapcore.AddSync(w)) // both write whole lines
	switch o.LogFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(sink, options)),
			zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), sink, etcd)), nil
	case "text":
		return slog.New(slog.NewTextHandler(sink, options)),
			zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), sink, etcd)), nil
	}
	return nil, nil, usagef("--log-format: %q is neither json nor text", o.LogFormat)
}
