/** Starts `capstan apiserver` as a separate process, and declares the custom resource that benches create in it. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ApiRequest, Client } from '@capstan/kube'
import { createClient, defineKind, s, systemClock, systemRandom, typeMeta } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { installKinds } from '@capstan/controller'
import { now } from './figure.ts'
import { residentBytes } from '../interop/processes/proc.ts'

const program = fileURLToPath(new URL('../packages/cli/bin/capstan.js', import.meta.url))

export interface Server {
  readonly client: Client
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string
  /** Milliseconds from spawn to ready. */
  readonly readyAfter: number
  /** Returns the resident memory of the process in bytes. */
  residentBytes(): number
  stop(): Promise<void>
}

/** Starts the server on a fresh, durable data folder and a free port. */
export async function startServer(): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const started = now()
  const child = spawn(
    process.execPath,
    [program, 'apiserver', '--data', join(folder, 'data'), '--secure-port', '0', '--kubeconfig', kubeconfig],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', () => resolve())
    void exited.then(() => reject(new Error(`capstan apiserver ended with code ${child.exitCode}`)))
  })
  const readyAfter = now() - started
  const transport = httpsTransport(await loadKubeconfig(kubeconfig), {
    clock: systemClock,
    random: systemRandom,
    userAgent: 'bench',
  })
  return {
    client: createClient(transport),
    kubeconfig,
    readyAfter,
    residentBytes: () => residentBytes(child.pid!),
    async stop() {
      transport.close()
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Kind of the custom resources that benches create, with a schema and a CEL rule. `aWidget` makes an object of about 1 KB of JSON. */
export const Widget = defineKind({
  group: 'bench.capstan.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: s
    .object({
      replicas: s.int32({ minimum: 0 }).default(1),
      image: s.string({ minLength: 1, maxLength: 200 }),
      ports: s
        .list(s.object({ name: s.string(), port: s.int32({ minimum: 1, maximum: 65535 }) }))
        .listMap('name')
        .optional(),
      settings: s.map(s.string({ maxLength: 500 }), { maxProperties: 50 }).optional(),
    })
    .rule('self.replicas <= 100 && self.image.contains("/")', 'at most 100 replicas of an image with a registry'),
  status: s.object({ ready: s.int32().optional(), conditions: s.conditions() }),
})

export const aWidget = (name: string) => ({
  metadata: { name, namespace: 'default', labels: { app: 'bench', shard: name.slice(-1) } },
  spec: {
    replicas: 3,
    image: 'registry.example.com/team/application:v1.2.3',
    ports: [
      { name: 'http', port: 8080 },
      { name: 'metrics', port: 9090 },
    ],
    settings: Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`setting-${i}`, `value ${i} of ${name}, long enough to take some space`]),
    ),
  },
})

/** The collection of Widgets in the namespace `default`, as fields of an `ApiRequest`. */
export const widgets = { group: Widget.group, version: Widget.version, plural: Widget.plural, namespace: 'default' }

/** Returns the request that creates a Widget. */
export const creation = (name: string): ApiRequest => ({
  verb: 'create',
  ...widgets,
  body: { ...typeMeta(Widget), ...aWidget(name) },
})

export const installWidgets = (client: Client): Promise<void> =>
  installKinds(client, [Widget as never], { clock: systemClock, random: systemRandom })
