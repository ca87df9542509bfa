package interop

import "go.uber.org/zap/zapcore"

func levelOf(name string) zapcore.Level {
	level, err := zapcore.ParseLevel(name)
	if err != nil || name == "" {
		return zapcore.DPanicLevel
	}
	return level
}
