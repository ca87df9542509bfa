import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent, systemClock, systemRandom } from '@capstan/kube'
import { memoryStores, type Plane } from '@capstan/lab'
import { servePlane } from '../packages/cli/src/serve-plane.ts'

interface ServedBenchPlane {
  readonly plane: Plane
  /** Path of the kubeconfig of its API server. */
  readonly kubeconfig: string
  close(): Promise<void>
}

/** Starts what `capstan up` starts, in this process and in memory, without a log. */
export async function startBenchPlane(): Promise<ServedBenchPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const { plane, close } = await servePlane({
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
    plane,
    kubeconfig,
    async close() {
      await close()
      rmSync(folder, { recursive: true })
    },
  }
}
