export * from '../hook.ts'
export * from './before-cluster-create.ts'
