export * from './outcome.ts'
export * from './controller.ts'
