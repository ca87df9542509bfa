// Program that the launchers of `capstan envtest` start, as `envtest.js etcd FLAGS` or `envtest.js kube-apiserver FLAGS`.
import { run } from './run.js'

await run('envtest.js', '../src/envtest/main.ts')
