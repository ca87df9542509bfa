/**
 * Capstan's controllers on a real kube-apiserver: the tests that are written for the embedded server and a virtual clock, unchanged.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Checks } from './capstan-process.ts'
import { startRealPlane } from './real-plane.ts'
import type { Suite } from './suite.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const files = [
  'packages/controller/src/controller.env.test.ts',
  'packages/core/src/cluster/cluster.env.test.ts',
  'packages/core/src/clusterclass/clusterclass.env.test.ts',
  'packages/core/src/extensionconfig/extensionconfig.env.test.ts',
  'packages/core/src/machine/machine.env.test.ts',
  'packages/core/src/machinedeployment/machinedeployment.env.test.ts',
  'packages/core/src/machineset/machineset.env.test.ts',
  'packages/core/src/topology/topology.env.test.ts',
]

export const controllersSuite: Suite = {
  shows: "Capstan's controllers pass their tests on a real kube-apiserver",
  ci: false,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  async run() {
    const checks = new Checks()
    // Lists go to etcd itself, so that an answer is never older than what was asked for before.
    await using plane = await startRealPlane({ flags: ['--watch-cache=false'], progress: console.log })
    for (const file of files) {
      const report = join(plane.folder, 'report.json')
      const args = [
        'node_modules/vitest/vitest.mjs',
        'run',
        file,
        '--reporter=json',
        `--outputFile=${report}`,
        '--testTimeout=120000',
        '--no-file-parallelism',
      ]
      const child = spawn(process.execPath, args, {
        cwd: root,
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...process.env, CAPSTAN_TEST_KUBECONFIG: plane.kubeconfig },
      })
      await new Promise((resolve) => child.once('close', resolve))
      const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
      for (const { fullName, status, duration = 0, failureMessages = [] } of testResults.flatMap((one) => one.assertionResults)) {
        console.log(`${status.padEnd(7)} ${(duration / 1000).toFixed(1).padStart(5)} s  ${fullName}`)
        if (status !== 'skipped') checks.check(fullName, status === 'passed', failureMessages[0]?.slice(0, 1500))
      }
    }
    return checks
  },
}

/** Of vitest. */
interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: 'passed' | 'failed' | 'skipped'
      readonly duration?: number
      readonly failureMessages?: readonly string[]
    }[]
  }[]
}
