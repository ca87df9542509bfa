// Program of the launchers that `capstan envtest` writes: `envtest.js etcd FLAGS` and `envtest.js kube-apiserver FLAGS`.
import { run } from './run.js'

await run('envtest.js', '../src/envtest/main.ts')
