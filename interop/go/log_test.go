package interop

import "go.uber.org/zap/zapcore"

// levelOf returns the log level with this name. It returns dpanic for an unknown or empty name, so that almost nothing is logged.
func levelOf(name string) zapcore.Level {
	level, err := zapcore.ParseLevel(name)
	if err != nil || name == "" {
		return zapcore.DPanicLevel
	}
	return level
}
