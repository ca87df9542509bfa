export * from './env.ts'
export * from './settle.ts'
