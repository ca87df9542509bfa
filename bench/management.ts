import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent, systemClock, systemRandom } from '@capstan/kube'
import { memoryStores, type ManagementCluster } from '@capstan/lab'
import { serveManagementCluster } from '../packages/cli/src/serve-management-cluster.ts'

interface ServedBenchManagement {
  readonly management: ManagementCluster
  /** Path of the kubeconfig of its API server. */
  readonly kubeconfig: string
  close(): Promise<void>
}

/** Starts the same management cluster as `capstan up`, in this process and in memory, without a log. */
export async function startManagement(): Promise<ServedBenchManagement> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const { management, close } = await serveManagementCluster({
    stores: memoryStores(),
    clock: systemClock,
    random: systemRandom,
    log: silent,
    pki: undefined,
    portFile: undefined,
    port: 0,
    kubeconfig,
  })
  return {
    management,
    kubeconfig,
    async close() {
      await close()
      rmSync(folder, { recursive: true })
    },
  }
}
