/** Two runtime clients that call the same handler: that of Capstan, and that of upstream in a child process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { BeforeClusterCreate, createCatalog, type ExtensionConfig, hookApiVersion, hookCatalog } from '@capstan/api'
import { callMetrics, createExtensionClient, fixture, httpsHookTransport } from '@capstan/extension'
import { silent, systemClock } from '@capstan/kube'
import { Registry } from 'prom-client'
import { inParallel, now } from './figure.ts'

/** The address that an extension server prints as a line of JSON when it is ready. */
export interface ServerAddress {
  readonly url: string
  readonly caBundle: string
}

export interface Calls {
  /** Time from the start of the first call to the end of the last call, in seconds. */
  readonly seconds: number
  /** Duration of each call in milliseconds. */
  readonly latencies: readonly number[]
}

export interface HookCaller {
  /** Makes `calls` calls, at most `inFlight` at once. */
  call(calls: number, inFlight: number): Promise<Calls>
  close(): void
}

const extension = 'bench'
const handler = 'gate'

/** Starts `hooks-server.ts` as a process, which ends when this process ends. */
export async function startHooksServer(): Promise<{ readonly address: ServerAddress; stop(): void }> {
  const args = [fileURLToPath(new URL('hooks-server.ts', import.meta.url)), '--dev', '--with-parent']
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return { address: JSON.parse(line) as ServerAddress, stop: () => child.stdin.end() }
}

/** Returns the runtime client of Capstan's core, with its metrics. */
export function ourCaller({ url, caBundle }: ServerAddress): HookCaller {
  const client = createExtensionClient({
    transport: httpsHookTransport(),
    catalog: createCatalog(hookCatalog),
    namespaceLabels: async () => ({}),
    clock: systemClock,
    log: silent,
  })
  client.observe(callMetrics(new Registry()))
  client.warmUp([registered(url, caBundle)])
  const request = fixture(BeforeClusterCreate)
  return {
    async call(calls, inFlight) {
      const latencies: number[] = []
      const seconds = await inParallel(calls, inFlight, async () => {
        const started = now()
        await client.call(BeforeClusterCreate, request.cluster, `${handler}.${extension}`, request)
        latencies.push(now() - started)
      })
      return { seconds, latencies }
    },
    close: () => client.close(),
  }
}

function registered(url: string, caBundle: string): ExtensionConfig {
  return {
    apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
    kind: 'ExtensionConfig',
    metadata: { name: extension, uid: '', resourceVersion: '', creationTimestamp: '' },
    spec: { clientConfig: { url, caBundle }, namespaceSelector: {} },
    status: {
      handlers: [
        {
          name: `${handler}.${extension}`,
          requestHook: { apiVersion: hookApiVersion(BeforeClusterCreate), hook: BeforeClusterCreate.name },
          timeoutSeconds: 10,
          failurePolicy: 'Fail',
        },
      ],
    },
  }
}

/** Starts upstream's runtime client. `program` is the path of the program `hooks-client`, which `scripts/tools` builds. */
export async function upstreamCaller(program: string, { url, caBundle }: ServerAddress): Promise<HookCaller> {
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)
  const ask = async (command: object): Promise<Calls> => {
    const nextLine = once(lines, 'line')
    child.stdin.write(`${JSON.stringify(command)}\n`)
    const {
      seconds = 0,
      latencies = [],
      error,
    } = JSON.parse(((await nextLine) as [string])[0]) as Partial<Calls> & { error?: string }
    if (error !== undefined) throw new Error(`hooks-client: ${error}`)
    return { seconds, latencies: latencies.map((microseconds) => microseconds / 1000) }
  }
  await ask({ url, caBundle, handler, request: fixture(BeforeClusterCreate) })
  return { call: (calls, inFlight) => ask({ calls, inFlight }), close: () => void child.stdin.end() }
}
