export * from './env.ts'
export * from './settle.ts'
export * from './core-objects.ts'
export * from './dev-provider.ts'
