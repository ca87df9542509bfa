export * from './follow.ts'
export * from './hook-calls.ts'
export * from './narrate.ts'
