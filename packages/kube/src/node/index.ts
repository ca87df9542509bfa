export * from './pki.ts'
export * from './kubeconfig.ts'
export * from './https-transport.ts'
