import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  BeforeClusterCreate,
  BeforeClusterDelete,
  type Cluster,
  createCatalog,
  type ExtensionConfig,
  hookCatalog,
} from '@capstan/api'
import { callHook, checkExtension, checkText, createExtensionClient, httpsHookTransport } from '@capstan/extension'
import { silent, systemClock } from '@capstan/kube'
import { afterEach, describe, expect, it } from 'vitest'
import { sampleExtension } from './extension.ts'

const clusterOf = (uid: string) => ({ metadata: { name: 'demo', namespace: 'default', uid }, spec: {} }) as Cluster
const request = { cluster: clusterOf('1') }

describe('the sample extension', () => {
  it('blocks every new Cluster once, for two seconds', async () => {
    const extension = sampleExtension()
    const wait = { status: 'Success', retryAfterSeconds: 2, message: 'preparing for demo' }
    expect(await callHook(extension, BeforeClusterCreate, request)).toMatchObject(wait)
    expect(await callHook(extension, BeforeClusterCreate, request)).toMatchObject({ retryAfterSeconds: 0 })
    expect(await callHook(extension, BeforeClusterCreate, { cluster: clusterOf('2') })).toMatchObject(wait)
  })

  it('blocks for the time in its settings', async () => {
    const requestWithSettings = { ...request, settings: { waitSeconds: '7' } }
    expect(await callHook(sampleExtension(), BeforeClusterCreate, requestWithSettings)).toMatchObject({ retryAfterSeconds: 7 })
  })

  it('passes the check for deterministic and idempotent handlers', async () => {
    expect(checkText(await checkExtension(sampleExtension()))).toMatch(
      /: deterministic and idempotent, as far as these calls show$/,
    )
  })

  it('allows the deletion of Clusters', async () => {
    expect(await callHook(sampleExtension(), BeforeClusterDelete, request)).toMatchObject({ retryAfterSeconds: 0 })
  })
})

describe('the program', () => {
  let child: ChildProcess
  afterEach(() => child.kill('SIGKILL'))
  const start = (...flags: string[]) => {
    const program = fileURLToPath(new URL('main.ts', import.meta.url))
    child = spawn(process.execPath, [program, ...flags], { stdio: ['pipe', 'pipe', 'pipe'] })
    return child
  }
  const firstLine = async () => ((await once(createInterface({ input: child.stdout! }), 'line')) as [string])[0]

  it('serves over TLS at the printed URL, and ends on SIGTERM', async () => {
    start('--dev')
    const { url, caBundle } = JSON.parse(await firstLine()) as { url: string; caBundle: string }
    const client = createExtensionClient({
      transport: httpsHookTransport(),
      catalog: createCatalog(hookCatalog),
      clock: systemClock,
      log: silent,
      namespaceLabels: async () => ({}),
    })
    const config = {
      metadata: { name: 'sample' },
      spec: { clientConfig: { url, caBundle }, namespaceSelector: {} },
    } as ExtensionConfig
    const handlers = await client.discover(config)
    expect(handlers.map(({ name, requestHook }) => `${name} ${requestHook.hook}`)).toEqual([
      'before-cluster-create.sample BeforeClusterCreate',
      'after-control-plane-initialized.sample AfterControlPlaneInitialized',
      'before-cluster-upgrade.sample BeforeClusterUpgrade',
      'after-control-plane-upgrade.sample AfterControlPlaneUpgrade',
      'after-cluster-upgrade.sample AfterClusterUpgrade',
      'before-cluster-delete.sample BeforeClusterDelete',
    ])
    client.warmUp([{ ...config, status: { handlers } }])
    expect(await client.callAll(BeforeClusterCreate, request.cluster, request)).toMatchObject({ retryAfterSeconds: 2 })
    // The connection is still open.
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    client.close()
  })

  it('ends when its stdin is closed, with the flag --with-parent', async () => {
    start('--dev', '--with-parent')
    await firstLine()
    child.stdin!.end()
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it.each([
    [['--webhook-port', 'many'], 2, 'sample: --webhook-port many: expected a port from 0 to 65535\nTry --help.\n'],
    [
      ['--webhook-cert-dir', '/nowhere'],
      1,
      "sample: Cannot serve without a certificate: ENOENT: no such file or directory, open '/nowhere/tls.crt' (--dev makes one)\n",
    ],
  ])('ends with an error for the flags %j', async (flags, code, message) => {
    start(...flags)
    let text = ''
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    expect(await once(child, 'close')).toEqual([code, null])
    expect(text).toBe(message)
  })
})
