/** Runs `client-node/checks.mjs`, which uses @kubernetes/client-node, against Capstan's API server and a real kube-apiserver. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { messageOf } from '@capstan/kube'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { Checks } from './processes/capstan-process.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { CannotRun, type Outcome, type Suite } from './shared/suite.ts'

const name = '@kubernetes/client-node'

export const clientNodeSuite: Suite = {
  shows: `${name}: typed API, watch, informer, KubernetesObjectApi and kubeconfigs, on Capstan's server and on a real one`,
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  run,
}

async function run(): Promise<Outcome> {
  try {
    import.meta.resolve(name)
  } catch (err) {
    throw new CannotRun(`${name} is not installed: ${messageOf(err)}`)
  }
  const checks = new Checks()
  for (const start of [startCapstanApiServer, startRealApiServer]) {
    await using apiServer = await start()
    const lines = await output(apiServer.kubeconfig)
    for (const line of lines) checks.check(`${apiServer.name}: ${line}`, line.startsWith('ok '))
    checks.check(`all checks ran on ${apiServer.name}`, lines.length === 7, lines.length)
  }
  return checks
}

async function output(kubeconfig: string): Promise<string[]> {
  const program = join(fileURLToPath(new URL('.', import.meta.url)), 'client-node/checks.mjs')
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, KUBECONFIG: kubeconfig },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  const timeout = setTimeout(() => child.kill(), 180_000)
  await ended
  clearTimeout(timeout)
  return lines
}
