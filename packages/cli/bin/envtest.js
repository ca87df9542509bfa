// What the launchers of `capstan envtest` run: `envtest.js etcd FLAGS` and `envtest.js kube-apiserver FLAGS`.
import module from 'node:module'

module.enableCompileCache?.()
await import('../src/envtest/main.ts')
