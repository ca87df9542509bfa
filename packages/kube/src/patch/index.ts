/** JSON patches, merge patches and strategic merge patches. */
export * from './json-patch.ts'
export * from './merge-patch.ts'
export * from './strategic-patch.ts'
