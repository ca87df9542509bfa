/**
 * Runs the same kubectl commands on `capstan apiserver` and on a real kube-apiserver with etcd and kube-controller-manager. Exit
 * code, stdout and stderr must be the same. The comparison ignores values that can differ between two servers (`normalize.ts`), known
 * differences with a reason (`explained.ts`) and, for some commands, the order of lines (`anyOrder` in `rows.ts`).
 * Run by `npm run interop -- kubectl-compare`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { explained } from './kubectl-compare/explained.ts'
import { normalized } from './kubectl-compare/normalize.ts'
import { type Row, type Section, sections } from './kubectl-compare/rows.ts'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Outcome, Suite } from './shared/suite.ts'
import { toolPaths } from './shared/tools.ts'

const manifests = fileURLToPath(new URL('kubectl-compare/manifests', import.meta.url))

export const kubectlCompareSuite: Suite = {
  shows: 'kubectl commands: the same exit code and output on capstan apiserver as on a real server',
  ci: true,
  tools: ['kubectl', 'etcd', 'kube-apiserver', 'kube-controller-manager'],
  run,
}

async function run(): Promise<Outcome> {
  const [kubectl] = await toolPaths('kubectl')
  const users = [{ name: 'bob', groups: ['devs'] }]
  await using ours = await startCapstanApiServer({ users, durable: true })
  await using real = await startRealApiServer({ users })
  const apiServerOf = ({ kubeconfig, kubeconfigOf }: typeof ours): ApiServer => ({ kubeconfig, bob: kubeconfigOf('bob') })
  const results = await compareKubectl(kubectl, { ours: apiServerOf(ours), real: apiServerOf(real) }, { onRow: printRow })
  const failed = results.filter(({ result }) => result === 'different').length
  return { passed: results.length - failed, failed }
}

/** Prints one line for the command and, if the result is `different`, the diff. */
function printRow({ section, run: command, result, why }: Compared): void {
  const printed = command.length > 110 ? `${command.slice(0, 109)}…` : command
  console.log(`${result.padEnd(9)}  ${section.padEnd(11)}  ${printed}${result === 'explained' ? `  (${why})` : ''}`)
  if (result === 'different') console.log(why.replace(/^/gm, '             '))
}

/** A server on which the commands run. */
export interface ApiServer {
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string
  /** Path of the kubeconfig of a user with few permissions. */
  readonly bob: string
}

interface CommandResult {
  readonly code: string
  readonly out: string
  readonly err: string
}

export interface Compared {
  readonly section: string
  readonly run: string
  readonly result: 'same' | 'explained' | 'different'
  /** Reason if the result is `explained`, diff of the outputs if it is `different`, otherwise empty. */
  readonly why: string
}

/** Runs the commands of the sections one after another, each on both servers at the same time. Calls `onRow` with each comparison. */
async function compareKubectl(
  kubectl: string,
  servers: { readonly ours: ApiServer; readonly real: ApiServer },
  { chosen = sections, onRow }: { chosen?: readonly Section[]; onRow: (row: Compared) => void },
): Promise<Compared[]> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-compare-'))
  const ours = new Shell(kubectl, servers.ours, join(folder, 'ours'))
  const real = new Shell(kubectl, servers.real, join(folder, 'real'))
  const runOnBoth = (command: string) => Promise.all([ours.run(command), real.run(command)])
  const results: Compared[] = []
  try {
    for (const { name, rows } of chosen) {
      await runOnBoth(`kubectl create namespace ${name}; kubectl config set-context --current --namespace=${name}`)
      for (const row of rows.map((entry): Row => (typeof entry === 'string' ? { run: entry } : entry))) {
        const [our, their] = await runOnBoth(row.run)
        const compared = { section: name, run: row.run, ...compare(row, our, their, folder) }
        results.push(compared)
        onRow(compared)
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return results
}

/** Runs commands in a shell whose kubectl uses one of the servers. */
class Shell {
  readonly #env: NodeJS.ProcessEnv

  constructor(kubectl: string, { kubeconfig, bob }: ApiServer, home: string) {
    mkdirSync(home)
    const copy = join(home, 'config')
    const config = readFileSync(kubeconfig, 'utf8')
    writeFileSync(copy, config, { mode: 0o600 })
    this.#env = {
      HOME: home,
      EDITOR: 'true',
      KUBECONFIG: copy,
      BOB: bob,
      PATH: `${join(kubectl, '..')}:${process.env.PATH}`,
      SERVER: /server:\s*['"]?(\S+?)['"]?\s*$/m.exec(config)?.[1],
    }
  }

  run(command: string): Promise<CommandResult> {
    // The shell has its own process group, so that its child processes are killed with it.
    const child = spawn('bash', ['-c', command], {
      cwd: manifests,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
    const timeout = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), 60_000)
    return new Promise((resolve) =>
      child.once('close', (code, signal) => {
        clearTimeout(timeout)
        resolve({ code: String(code ?? signal), out, err })
      }),
    )
  }
}

function compare(row: Row, ours: CommandResult, real: CommandResult, folder: string): Pick<Compared, 'result' | 'why'> {
  const printed = ({ code, out, err }: CommandResult): string => {
    const text = [`exit ${code}`, normalized(out), ...(err === '' ? [] : ['stderr:', normalized(err)])].join('\n')
    return row.anyOrder ? text.split('\n').sort().join('\n') : text
  }
  let [our, their] = [printed(ours), printed(real)]
  if (our === their) return { result: 'same', why: '' }
  for (const name of row.allowed ?? []) {
    const { mask, reason } = explained[name]
    ;[our, their] = [mask(our), mask(their)]
    if (our === their) return { result: 'explained', why: reason }
  }
  return { result: 'different', why: difference(their, our, folder) }
}

/** Returns a unified diff with one line of context: the real server's lines with `-`, Capstan's with `+`. */
function difference(real: string, ours: string, folder: string): string {
  const files = [join(folder, 'real.txt'), join(folder, 'ours.txt')]
  writeFileSync(files[0]!, `${real}\n`)
  writeFileSync(files[1]!, `${ours}\n`)
  const { stdout } = spawnSync('diff', ['-U1', ...files], { encoding: 'utf8' })
  return stdout.split('\n').slice(2).join('\n').trimEnd()
}
