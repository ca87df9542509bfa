export * from './pki.ts'
export * from './kubeconfig.ts'
