/**
 * Entry point of the programs `etcd` and `kube-apiserver` that test suites start, for example with controller-runtime's envtest. Each
 * program loads only the modules that it needs, because the suites wait until both programs have started.
 */
import { processIo } from '../process-io.ts'

const [program, ...argv] = process.argv.slice(2)
const io = processIo(process)
if (program !== 'etcd') (await import('../small-heap.ts')).keepHeapSmall()
process.exitCode =
  program === 'etcd'
    ? await (await import('./etcd.ts')).runEtcd(argv, io)
    : await (await import('./kube-apiserver.ts')).runKubeApiserver(argv, io)
