package interop

import "go.uber.org/zap/zapcore"

// levelOf returns the log level with this name. For another name, or none, only messages of level dpanic and above are logged.
func levelOf(name string) zapcore.Level {
	level, err := zapcore.ParseLevel(name)
	if err != nil || name == "" {
		return zapcore.DPanicLevel
	}
	return level
}
