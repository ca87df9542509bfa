export { isPaused, PausedAnnotation, pausedCondition, whenNotPaused } from '@capstan/api'
