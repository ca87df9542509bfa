export * from './field.ts'
