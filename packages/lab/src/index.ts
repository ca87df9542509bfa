export * from './narrate.ts'
