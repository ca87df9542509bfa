export { clonedKind, fromTemplate, type FromTemplateOptions } from '@capstan/api'
