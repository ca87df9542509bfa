// What the launchers of `capstan envtest` run: `envtest.js etcd FLAGS` and `envtest.js kube-apiserver FLAGS`.
import { run } from './run.js'

await run('envtest.js', '../src/envtest/main.ts')
