import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { etcdHelp } from '../envtest/etcd-flags.ts'
import { kubeApiserverHelp } from '../envtest/kube-apiserver.ts'
import { writeLaunchers } from '../envtest/launchers.ts'
import type { Io } from '../io.ts'

/** `capstan envtest`: writes launchers, so that test suites of controller-runtime, kube-rs and others run on Capstan. */
export const envtestCommand = (io: Io): Command =>
  new Command('envtest')
    .description('Write launchers named kube-apiserver and etcd, for test suites that start these programs')
    .argument('<dir>', 'folder to write the launchers to')
    .addHelpText('after', '\nPrints the folder:  KUBEBUILDER_ASSETS=$(capstan envtest bin/envtest) go test ./...')
    .action(async (dir: string) => {
      const folder = resolve(dir)
      const entry = fileURLToPath(new URL('../../bin/envtest.js', import.meta.url))
      const help = { etcd: etcdHelp, 'kube-apiserver': kubeApiserverHelp(io) }
      const { kubectl } = await writeLaunchers({ folder, node: process.execPath, entry, help, path: io.env.PATH })
      io.out(folder)
      if (kubectl === undefined)
        io.err(
          'There is no kubectl on the PATH, so no link to it was written; suites that call kubectl fail unless the folder has one.',
        )
    })
