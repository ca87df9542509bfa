/** Runs upstream's clusterctl against an API server. */
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { RunningApiServer } from '../processes/api-server.ts'
import { toolPaths } from '../shared/tools.ts'

export interface Clusterctl {
  /** Runs clusterctl with `args`. Returns stdout (as `out`) and stderr. @throws Error with stderr when clusterctl fails */
  run(...args: readonly string[]): Promise<{ out: string; stderr: string }>
}

/**
 * Time limit of a command in milliseconds. Successful commands of the suites end earlier, but `clusterctl move` retries for
 * minutes when the target rejects a write.
 */
const Limit = 180_000

/** Returns clusterctl with the administrator's kubeconfig of an API server. */
export async function clusterctlOn({ folder, kubeconfig }: RunningApiServer): Promise<Clusterctl> {
  const [path] = await toolPaths('clusterctl')
  const home = join(folder, 'home')
  mkdirSync(home, { recursive: true })
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    KUBECONFIG: kubeconfig,
    // Without network, the search for a newer release takes a minute.
    CLUSTERCTL_DISABLE_VERSIONCHECK: 'true',
    NO_COLOR: '1',
  }
  return {
    run: (...args) =>
      new Promise((resolve, reject) => {
        const child = spawn(path, args, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: Limit, killSignal: 'SIGKILL' })
        let out = ''
        let stderr = ''
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          out += text
        })
        child.stderr.setEncoding('utf8').on('data', (text: string) => {
          stderr += text
        })
        child.on('error', reject)
        child.on('close', (code, signal) => {
          if (code === 0) resolve({ out, stderr })
          else reject(new Error(`clusterctl ${args.join(' ')} ended with ${signal ?? code}:\n${stderr}`))
        })
      }),
  }
}
