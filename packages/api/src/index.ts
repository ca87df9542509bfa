export * from './contract/index.ts'
export * from './runtime/hooks/index.ts'
