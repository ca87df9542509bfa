export * from './runtime-client.ts'
