import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  BeforeClusterCreate,
  Cluster,
  ClusterNameLabel,
  ExtensionConfig,
  hookCatalog,
  hooksOpenApi,
  Machine,
  waitingHooks,
  WaitingHooksAnnotation,
} from '@capstan/api'
import {
  defineExtension,
  type Extension,
  extensionServer,
  fail,
  fixture,
  holdFor,
  inProcess,
  listen,
  on,
} from '@capstan/extension'
import { type Client, createClient, Namespace, seconds, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, issueCertificate, loadKubeconfig, makeAuthority } from '@capstan/kube/node'
import { LocalCluster, LocalMachine } from '@capstan/local'
import { applyDemo, createFrom, managementEnv } from '@capstan/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostExtension } from '../../../../examples/provider-hook/extension.ts'
import { sampleExtension } from '../../../../examples/sample-extension/extension.ts'
import { untilTrue } from '../demo.ts'
import { recordHooks } from '../hook-tapes.ts'
import { runToEnd, start } from '../test-io.ts'

const providerHooksFlags = [
  '--provider-hooks',
  fileURLToPath(new URL('../../../../examples/provider-hook/hooks.ts', import.meta.url)),
]

const folder = mkdtempSync(join(tmpdir(), 'capstan-hooks-'))
const closing: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

interface Server {
  readonly url: string
  /** File with the certificate of the authority to trust. */
  readonly ca: string
}

async function serve(extension: Extension): Promise<Server> {
  const authority = await makeAuthority(systemClock, { commonName: 'test' })
  const serving = await issueCertificate(authority, systemClock, {
    commonName: '127.0.0.1',
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
  })
  const ca = join(folder, `${extension.name}-${closing.length}.pem`)
  writeFileSync(ca, authority.certificate)
  const server = await listen(extensionServer(extension), serving)
  closing.push(() => server.close())
  return { url: server.url, ca }
}

describe('capstan hooks call', () => {
  let url: string
  let strictURL: string
  const ca = join(folder, 'ca.pem')
  const client = [join(folder, 'client.pem'), join(folder, 'client.key')] as const
  beforeAll(async () => {
    const authority = await makeAuthority(systemClock, { commonName: 'test' })
    const serving = await issueCertificate(authority, systemClock, {
      commonName: '127.0.0.1',
      ipAddresses: ['127.0.0.1'],
      usages: ['server'],
    })
    writeFileSync(ca, authority.certificate)
    const extension = defineExtension({
      name: 'sample',
      handlers: [
        on(BeforeClusterCreate, { name: 'gate' }, ({ request }) =>
          request.cluster.metadata.name === 'demo' ? holdFor(5, 'quota') : fail('not this one'),
        ),
      ],
    })
    const server = await listen(extensionServer(extension), serving)
    closing.push(() => server.close())
    ;({ url } = server)
    const strict = await listen(extensionServer(extension), { ...serving, clientCA: authority.certificate })
    closing.push(() => strict.close())
    strictURL = strict.url
    const clientCertificate = await issueCertificate(authority, systemClock, { commonName: 'author', usages: ['client'] })
    writeFileSync(client[0], clientCertificate.certificate)
    writeFileSync(client[1], clientCertificate.key)
  })

  test('presents the certificate of --client-cert to a server that requires one, and rejects --client-cert without --client-key', async () => {
    const argv = ['hooks', 'call', strictURL, 'BeforeClusterCreate', '--ca', ca]
    expect(await runToEnd([...argv, '--client-cert', client[0], '--client-key', client[1]])).toMatchObject({ code: 0, err: '' })
    const { code, err } = await runToEnd(argv)
    expect(code).toBe(1)
    expect(err).toMatch(/^capstan: ClientCertificate: .*remote error: tls: certificate required$/)
    const withoutKey = await runToEnd([...argv, '--client-cert', client[0]])
    expect([withoutKey.code, withoutKey.err]).toEqual([
      2,
      expect.stringContaining('--client-cert and --client-key must be given together'),
    ])
  })

  test('sends a valid request to the handler that discovery returns, and prints the response and how core reacts to it', async () => {
    const { code, out, err } = await runToEnd(['hooks', 'call', url, 'beforeclustercreate', '--ca', ca])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^BeforeClusterCreate of gate answered after \d+ ms:\n/)
    const [answer, ...core] = out.slice(out.indexOf('\n')).split('\ncore ')
    expect(JSON.parse(answer!)).toMatchObject({ status: 'Success', retryAfterSeconds: 5, message: 'quota' })
    expect(core).toEqual(['waits, and calls again after 5 s', 'shows "BeforeClusterCreate: quota"'])
  })

  test('sends the request of a file, and exits with 1 for a failure', async () => {
    const file = join(folder, 'request.yaml')
    writeFileSync(file, 'cluster: { apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: { name: other }, spec: {} }\n')
    const { code, out } = await runToEnd([
      'hooks',
      'call',
      url,
      'BeforeClusterCreate',
      '--ca',
      ca,
      '--fixture',
      file,
      '-o',
      'json',
    ])
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      handler: 'gate',
      response: { status: 'Failure', message: 'not this one' },
      core: {
        kind: 'rejected',
        error: 'failed to call extension handler "gate": got failure response with message: not this one',
      },
    })
  })

  test.each([
    [['BeforeClusterCreate'], 1, /^capstan: UnknownAuthority: .*certificate signed by unknown authority$/],
    [['BeforeLunch'], 2, /there is no hook BeforeLunch\nThere are Discovery, BeforeClusterCreate,/],
    [['BeforeClusterDelete', '--ca', ca], 1, /^capstan: NotRegistered: the server has no handler for BeforeClusterDelete$/],
    [['BeforeClusterCreate', '--ca', ca, '--handler', 'other'], 1, /^capstan: NotFound: .*404 != 200/],
  ])('reports an error for %j', async (argv, code, expectedError) => {
    const result = await runToEnd(['hooks', 'call', url, ...argv])
    expect({ code: result.code, out: result.out }).toEqual({ code, out: '' })
    expect(result.err).toMatch(expectedError)
  })
})

describe('hooks of a provider', () => {
  let provider: Server
  beforeAll(async () => {
    provider = await serve(hostExtension(new Set()))
  })
  const call = (hook: string, ...argv: string[]) =>
    runToEnd(['hooks', 'call', provider.url, hook, '--ca', provider.ca, ...providerHooksFlags, ...argv])

  test('are called in their newest version, with a request derived from the declaration', async () => {
    const { code, out, err } = await call('BeforeHostProvision')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^BeforeHostProvision of budget answered after \d+ ms:\n/)
    expect(out).toMatch(/\nthe caller continues$/)
  })

  test('are called in another version when GROUP/VERSION/NAME is given', async () => {
    const { code, out } = await call('hooks.provider.example.com/v1beta1/BeforeHostProvision', '-o', 'json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ handler: 'inventory', response: { message: 'hostname is not in the inventory' } })
  })

  test('are accepted in a discovery response only with --provider-hooks', async () => {
    expect(await call('Discovery')).toMatchObject({
      code: 0,
      out: expect.stringContaining('registers budget for BeforeHostProvision'),
    })
    const { code, err } = await runToEnd(['hooks', 'call', provider.url, 'Discovery', '--ca', provider.ca])
    expect(code).toBe(1)
    expect(err).toContain('BeforeHostProvision is not in the Runtime SDK catalog')
  })

  test.each([
    ['up', ['up']],
    ['dev', ['dev', fileURLToPath(new URL('../../../../examples/sample-extension', import.meta.url))]],
    ['hooks call', ['hooks', 'call', 'https://127.0.0.1:1', 'Discovery']],
    ['hooks replay', ['hooks', 'replay', 'x', '--url', 'https://127.0.0.1:1']],
  ])('cannot be read from a missing module of --provider-hooks: capstan %s exits with 2', async (_, argv) =>
    expect(await runToEnd([...argv, '--provider-hooks', join(folder, 'absent.ts')])).toMatchObject({
      code: 2,
      err: expect.stringContaining('absent.ts: there is no such file'),
    }),
  )
})

describe('wrong usage is reported with its reason and exit code 2', () => {
  const absent = join(folder, 'absent')
  const broken = join(folder, 'broken.yaml')
  const other = join(folder, 'other.yaml')
  writeFileSync(broken, 'cluster: {')
  writeFileSync(other, 'kind: BeforeClusterDeleteRequest')
  const call = ['call', 'https://127.0.0.1:1', 'BeforeClusterCreate']
  test.each([
    [[...call, '--ca', absent], `--ca ${absent}: there is no such file`],
    [[...call, '--client-cert', absent, '--client-key', absent], `--client-cert ${absent}: there is no such file`],
    [[...call, '--fixture', folder], `--fixture ${folder}: it is a folder`],
    [[...call, '--fixture', broken], `--fixture ${broken}: it is neither YAML nor JSON: `],
    [
      [...call, '--fixture', other],
      `--fixture ${other}: its kind is "BeforeClusterDeleteRequest", and BeforeClusterCreate takes a`,
    ],
    [[...call, '--ca', broken], `--ca ${broken}: it has no certificate in PEM`],
    [
      [...call, '--client-cert', broken, '--client-key', other],
      `--client-cert ${broken} and --client-key ${other} are not a certificate`,
    ],
    [[...call, '--timeout', 'soon'], "argument 'soon' is invalid. expected a number of seconds above 0, at most 30."],
    [[...call, '--timeout', '0'], "argument '0' is invalid. expected a number of seconds above 0, at most 30."],
    [
      ['call', 'http://127.0.0.1', 'BeforeClusterCreate'],
      'http://127.0.0.1 is not a URL with https\nHooks are called over HTTPS only',
    ],
    [['call', '127.0.0.1:9443', 'BeforeClusterCreate'], '127.0.0.1:9443 is not a URL with https'],
    [['replay', absent, '--url', 'https://127.0.0.1:1'], `tape ${absent}: there is no such file`],
    [['replay', broken, '--url', 'https://127.0.0.1:1'], `tape ${broken}: not a tape: `],
    [['waiting', '--kubeconfig', absent], `there is no kubeconfig ${absent}\nName the management cluster with --kubeconfig`],
    [['preflight', '--kubeconfig', absent], `there is no kubeconfig ${absent}\n`],
    [
      ['record', 'https://127.0.0.1:1', '--fixture', 'x'],
      'Calls are recorded where they are made: capstan up, dev or manager with',
    ],
  ])('%j', async (argv, expectedError) => {
    const { code, out, err } = await runToEnd(['hooks', ...argv])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(expectedError)
  })
})

test('hooks call connects through the proxy of the environment', async () => {
  const argv = ['hooks', 'call', 'https://hooks.example.com', 'Discovery']
  const { code, err } = await runToEnd(argv, { HTTPS_PROXY: 'http://127.0.0.1:1' })
  expect(code).toBe(1)
  // The connection to the proxy failed, because no server listens on its port. The host name of the extension was not resolved.
  expect(err).toMatch(/^capstan: ConnectionRefused: /)
})

describe('tapes (recorded hook calls)', () => {
  const [tape, second] = [join(folder, 'calls.tape'), join(folder, 'second.tape')]
  const readCalls = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n')
  beforeAll(async () => {
    const recording = await recordHooks({ recordHooks: tape }, systemClock, () => {})
    const env = await managementEnv({
      hookTransport: inProcess(extensionServer(sampleExtension())),
      ...(recording.onCall ? { onCall: recording.onCall } : {}),
    })
    await env.client.create(ExtensionConfig, { metadata: { name: 'sample' }, spec: { clientConfig: { url: 'https://sample' } } })
    await env.settle()
    await applyDemo(env.client)
    await env.advance(seconds(30))
    await env.close()
    await recording.close()
  })

  test('up replays a tape instead of calling an extension, and records calls', async () => {
    const files = ['--kubeconfig', join(folder, 'played'), '--replay-hooks', tape, '--record-hooks', second]
    const up = start(['up', '--demo', '--memory', '--port', '0', ...files])
    await up.line(/Available after/)
    await up.interrupt()
    expect(up.out.flatMap((line) => /: (\w+ called on .*)/.exec(line)?.[1] ?? [])).toEqual([
      'BeforeClusterCreate called on before-cluster-create.sample: wait 2 s (preparing for demo)',
      'BeforeClusterCreate called on before-cluster-create.sample: proceed',
      'AfterControlPlaneInitialized called on after-control-plane-initialized.sample: proceed',
    ])
    const [first, again] = [tape, second].map((path) => readCalls(path).map((line) => JSON.parse(line)))
    expect(again![0]).toMatchObject({ tape: 'capstan.dev/hook-calls', version: 1 })
    const responses = (calls: { hook: string; response: object }[]) =>
      calls.slice(1).map(({ hook, response }) => ({ hook, response }))
    expect(responses(again!)).toEqual(responses(first!))
  })

  test('up rejects an invalid tape with exit code 2, and does not overwrite it', async () => {
    const file = join(folder, 'notes')
    writeFileSync(file, 'notes\n')
    for (const flag of ['--record-hooks', '--replay-hooks']) {
      const { code, out, err } = await runToEnd(['up', '--memory', '--port', '0', flag, file])
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).toContain(`${file}: not a tape`)
    }
    expect(readFileSync(file, 'utf8')).toBe('notes\n')
  })

  describe('capstan hooks replay', () => {
    let url: string
    beforeAll(async () => {
      const authority = await makeAuthority(systemClock, { commonName: 'test' })
      const names = { commonName: '127.0.0.1', ipAddresses: ['127.0.0.1'] }
      const serving = await issueCertificate(authority, systemClock, { ...names, usages: ['server'] })
      writeFileSync(join(folder, 'ca2.pem'), authority.certificate)
      const server = await listen(extensionServer(sampleExtension()), serving)
      closing.push(() => server.close())
      ;({ url } = server)
    })
    const replay = (...argv: string[]) =>
      runToEnd(['hooks', 'replay', tape, '--url', url, '--ca', join(folder, 'ca2.pem'), ...argv])

    test('a difference of Discovery names the hook without a handler', async () => {
      const lines = readCalls(tape)
      const index = lines.findIndex((text) => text.includes('"hook":"Discovery"'))
      const discovery = JSON.parse(lines[index]!)
      discovery.response.handlers.pop()
      const changedTape = join(folder, 'discovery.tape')
      writeFileSync(changedTape, lines.with(index, JSON.stringify(discovery)).join('\n'))
      const argv = ['hooks', 'replay', changedTape, '--url', url, '--ca', join(folder, 'ca2.pem'), '--hook', 'Discovery']
      const { code, out } = await runToEnd(argv)
      expect(code).toBe(1)
      expect(out).toContain(`line ${index + 1}: Discovery: handlers`)
    })

    test('reports no differences for equal responses, otherwise the differences and exit code 1', async () => {
      const equalReplay = await replay()
      expect({ code: equalReplay.code, err: equalReplay.err }).toEqual({ code: 0, err: '' })
      expect(equalReplay.out).toMatch(
        /^HOOK +HANDLER +CALLS +SAME +P50 +P99 +P50 ON TAPE +P99 ON TAPE\nDiscovery +\d+ +\d+ +\d+ ms/,
      )
      expect(equalReplay.out).toMatch(/BeforeClusterCreate +before-cluster-create +2 +2 /)

      const different = await replay('--hook', 'BeforeClusterCreate')
      expect(different.code).toBe(1)
      const number = readCalls(tape).findIndex((text) => text.includes('"BeforeClusterCreate","handler"')) + 1
      // The server blocks each Cluster only once, so this response differs from the tape.
      expect(different.out).toContain(
        `line ${number}: BeforeClusterCreate of before-cluster-create: retryAfterSeconds: 2 on tape, 0 now`,
      )
      const json = await replay('--hook', 'BeforeClusterCreate', '-o', 'json')
      expect(json.out.split('\n').map((text) => JSON.parse(text))).toEqual([
        {
          line: number,
          hook: 'BeforeClusterCreate',
          handler: 'before-cluster-create.sample',
          extensionConfig: 'sample',
          took: expect.any(Number),
          differences: [
            { path: 'message', before: 'preparing for demo' },
            { path: 'retryAfterSeconds', before: 2, after: 0 },
          ],
        },
        expect.objectContaining({ hook: 'BeforeClusterCreate', handler: 'before-cluster-create', calls: 2, different: 1 }),
      ])
    })

    test('lists the hooks and handlers of the tape when no call matches', async () => {
      const { code, err } = await replay('--handler', 'nobody')
      expect(code).toBe(2)
      expect(err).toMatch(
        /has no matching calls\nIt has AfterControlPlaneInitialized of .*, BeforeClusterCreate of .*, Discovery\.$/,
      )
    })
  })
})

describe('capstan hooks check', () => {
  const sources = ['api', 'extension'].map((name) => new URL(`../../../${name}/src/index.ts`, import.meta.url).href)
  const module = join(folder, 'extension.ts')

  test('calls handlers with fixtures and requests of a tape, and exits with 1 when a handler is not deterministic', async () => {
    writeFileSync(
      module,
      `import { BeforeClusterCreate } from '${sources[0]}'
import { defineExtension, holdFor, on, proceedNow } from '${sources[1]}'
let calls = 0
export const extension = defineExtension({
  name: 'sample',
  handlers: [
    on(BeforeClusterCreate, { name: 'before-cluster-create' }, ({ request, settings }) =>
      request.cluster.spec.topology?.classRef.name === 'demo' ? holdFor(5, \`\${settings.region} \${calls++}\`) : proceedNow(),
    ),
  ],
})
`,
    )
    const good = await runToEnd(['hooks', 'check', module])
    expect(good).toEqual({
      code: 0,
      out: '1 handler called with 2 requests in 2 processes: deterministic and idempotent, as far as these calls show',
      err: '',
    })
    const tape = join(folder, 'check.tape')
    const { cluster } = fixture(BeforeClusterCreate, { cluster: { spec: { topology: { classRef: { name: 'demo' } } } } })
    const call = {
      group: 'hooks.runtime.cluster.x-k8s.io',
      version: 'v1alpha1',
      hook: 'BeforeClusterCreate',
      handler: 'before-cluster-create.sample',
      extensionConfig: 'sample',
      url: 'https://sample',
      started: '2026-01-01T00:00:00.000Z',
      took: 1,
      request: { cluster, settings: { region: 'eu1' } },
      response: {},
    }
    const header = { tape: 'capstan.dev/hook-calls', version: 1, began: '2026-01-01T00:00:00.000Z' }
    writeFileSync(tape, [header, call, call].map((line) => `${JSON.stringify(line)}\n`).join(''))
    const bad = await runToEnd(['hooks', 'check', folder, '--tape', tape, '-o', 'json'])
    expect(bad.code).toBe(1)
    expect(JSON.parse(bad.out)).toMatchObject({
      findings: [{ kind: 'message', handler: 'before-cluster-create', from: 'line 2 of check.tape' }],
      requests: 3,
    })
  })

  test('rejects a missing module, and a setting without a value', async () => {
    expect(await runToEnd(['hooks', 'check', join(folder, 'no.ts')])).toMatchObject({
      code: 2,
      err: expect.stringContaining('there is no'),
    })
    expect(await runToEnd(['hooks', 'check', module, '--setting', 'x'])).toMatchObject({ code: 2 })
  })
})

test('capstan hooks openapi prints the 17 hooks of the Runtime SDK, the same document each time, as YAML by default', async () => {
  const first = await runToEnd(['hooks', 'openapi', '-o', 'json'])
  expect(first.code).toBe(0)
  expect(Object.keys(JSON.parse(first.out).paths)).toHaveLength(17)
  expect(await runToEnd(['hooks', 'openapi', '-o', 'json'])).toEqual(first)
  expect((await runToEnd(['hooks', 'openapi'])).out).toMatch(/^openapi: 3\.0\.0\n/)
})

test('capstan hooks openapi includes the hooks of the module that --provider-hooks names', async () => {
  const { out } = await runToEnd(['hooks', 'openapi', '-o', 'json', ...providerHooksFlags])
  expect(Object.keys(JSON.parse(out).paths)).toHaveLength(19)
})

test('capstan hooks catalog prints the catalog of a release, and reports incompatible changes since earlier releases', async () => {
  const [unchanged, changed] = [join(folder, 'unchanged.json'), join(folder, 'changed.json')]
  const printed = (await runToEnd(['hooks', 'catalog', ...providerHooksFlags, '--release', 'v0.1.0', '--date', '2026-11-21'])).out
  writeFileSync(unchanged, printed)
  writeFileSync(changed, printed.replace('"hostname"', '"host"').replace('v0.1.0', 'v0.0.9'))
  const since = (...files: string[]) =>
    runToEnd(['hooks', 'catalog', ...providerHooksFlags, ...files.flatMap((file) => ['--since', file])])
  expect(await since(unchanged)).toEqual({ code: 0, out: 'this release is compatible with v0.1.0', err: '' })
  expect(await since(unchanged, changed)).toEqual({
    code: 1,
    out: 'Rule #1: hooks.provider.example.com/v1beta1, Hook=BeforeHostProvision: request.host is gone: that needs a new version',
    err: '',
  })
  expect(await since(join(folder, 'ca.pem'))).toMatchObject({ code: 2 })
})

describe('with a management cluster', () => {
  const kubeconfig = join(folder, 'kubeconfig')
  let client: Client
  beforeAll(async () => {
    const up = start(['up', '--memory', '--port', '0', '--kubeconfig', kubeconfig, ...providerHooksFlags])
    closing.push(() => up.interrupt())
    await up.line(/https:/)
    const transport = httpsTransport(await loadKubeconfig(kubeconfig), { clock: systemClock, random: systemRandom })
    closing.push(() => transport.close())
    client = createClient(transport)
  })
  const hooks = (...argv: string[]) => runToEnd(['hooks', ...argv, '--kubeconfig', kubeconfig])

  test('hooks waiting lists the blocking hooks of Clusters, Machines and provider objects; hooks retry requests new calls for a Cluster', async () => {
    expect(await hooks('waiting')).toMatchObject({ code: 0, out: 'No Clusters found, and no object waits for a hook' })
    const record = {
      hook: 'BeforeClusterCreate',
      handlers: ['gate.x'],
      since: '2026-01-01T00:00:00Z',
      calls: 3,
      message: 'quota',
    }
    await client.create(Cluster, {
      metadata: { name: 'demo', namespace: 'default', annotations: { [WaitingHooksAnnotation]: JSON.stringify([record]) } },
      spec: { paused: true, infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalCluster', name: 'demo' } },
    })
    const { out } = await hooks('waiting')
    expect(out.split('\n')[0]).toMatch(/^NAMESPACE +CLUSTER +HOOK +HANDLER +SINCE +NEXT CALL IN +CALLS +MESSAGE$/)
    expect(out.split('\n')[1]).toMatch(/^default +demo +BeforeClusterCreate +gate\.x +\d+d +backing off +3 +quota$/)
    expect(JSON.parse((await hooks('waiting', '-o', 'json')).out)).toEqual({
      namespace: 'default',
      cluster: 'demo',
      kind: 'Cluster',
      name: 'demo',
      ...record,
    })
    const update = { ...record, hook: 'UpdateMachine', calls: 1, message: 'installing\n\u001b[31mnow' }
    await client.create(Machine, {
      metadata: {
        name: 'm1',
        namespace: 'default',
        labels: { [ClusterNameLabel]: 'demo' },
        annotations: { [WaitingHooksAnnotation]: JSON.stringify([update]) },
      },
      spec: {
        clusterName: 'demo',
        bootstrap: { dataSecretName: 'x' },
        infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachine', name: 'm1' },
      },
    })
    expect((await hooks('waiting')).out.split('\n')[2]).toMatch(
      /^default +demo +UpdateMachine \(m1\) +gate\.x .* installing \[31mnow$/,
    )
    expect(JSON.parse((await hooks('waiting', '-o', 'json')).out.split('\n')[1]!)).toEqual({
      namespace: 'default',
      cluster: 'demo',
      kind: 'Machine',
      name: 'm1',
      ...update,
    })
    // A provider keeps the same records on objects of its own.
    const host = { ...record, hook: 'BeforeHostProvision', message: 'not in the inventory' }
    const hostMetadata = { name: 'h1', namespace: 'default', annotations: { [WaitingHooksAnnotation]: JSON.stringify([host]) } }
    await client.create(LocalMachine, { metadata: { ...hostMetadata, labels: { [ClusterNameLabel]: 'demo' } }, spec: {} })
    await client.create(LocalCluster, { metadata: { ...hostMetadata, name: 'alone' }, spec: {} })
    const { out: all, err } = await hooks('waiting')
    expect(err).toBe('')
    expect(all.split('\n').map((line) => line.split(/ {2,}/).slice(1, 3).join(' '))).toEqual([
      'CLUSTER HOOK',
      '<none> BeforeHostProvision (LocalCluster alone)',
      'demo BeforeClusterCreate',
      'demo BeforeHostProvision (LocalMachine h1)',
      'demo UpdateMachine (m1)',
    ])
    expect((await hooks('waiting', '-n', 'kube-system')).out).toBe('No Clusters found, and no object waits for a hook')
    await client.delete(LocalCluster, { namespace: 'default', name: 'alone' })
    await client.delete(LocalMachine, { namespace: 'default', name: 'h1' })
    expect(await hooks('retry', 'demo')).toMatchObject({
      code: 0,
      out: 'Cluster default/demo: BeforeClusterCreate, UpdateMachine (m1) will be called again',
    })
    expect(JSON.parse((await hooks('retry', 'demo', '-o', 'json')).out)).toEqual({
      namespace: 'default',
      cluster: 'demo',
      retriedHooks: [{ hook: 'BeforeClusterCreate' }, { hook: 'UpdateMachine', machine: 'm1' }],
    })
    const { metadata } = await client.get(Cluster, { namespace: 'default', name: 'demo' })
    expect(metadata.annotations).toHaveProperty(['runtime.capstan.dev/retry-hooks'])
    expect(await hooks('retry', 'nobody')).toMatchObject({ code: 1, err: expect.stringContaining('"nobody" not found') })
  })

  test('up discovers handlers of hooks from --provider-hooks', async () => {
    const provider = await serve(hostExtension(new Set()))
    const clientConfig = { url: provider.url, caBundle: readFileSync(provider.ca).toString('base64') }
    await client.create(ExtensionConfig, { metadata: { name: 'cellar' }, spec: { clientConfig } })
    await untilTrue(client, ExtensionConfig, { name: 'cellar' }, 'Discovered', AbortSignal.timeout(100_000))
    const { status } = await client.get(ExtensionConfig, { name: 'cellar' })
    expect(status?.handlers?.map(({ name }) => name)).toEqual(['inventory.cellar', 'budget.cellar'])
    await client.delete(ExtensionConfig, { name: 'cellar' })
  })

  test('hooks preflight lists handlers whose hook a release lacks or deprecates, and exits with 1 if it lacks one', async () => {
    await client.create(ExtensionConfig, { metadata: { name: 'x' }, spec: { clientConfig: { url: 'https://x' } } })
    const apiVersion = 'hooks.runtime.cluster.x-k8s.io/v1alpha1'
    const handlers = ['BeforeClusterCreate', 'UpdateMachine'].map((hook) => ({
      name: `${hook.toLowerCase()}.x`,
      requestHook: { apiVersion, hook },
    }))
    await client.patch(
      ExtensionConfig,
      { name: 'x' },
      { type: 'merge', body: { status: { handlers } } },
      { subresource: 'status' },
    )
    expect(await hooks('preflight')).toMatchObject({ code: 0, out: '2 handlers, all of which this release calls' })
    const { code, out } = await hooks('preflight', '--catalog', 'v1.11')
    expect(code).toBe(1)
    expect(out.split('\n')[1]).toMatch(
      /^updatemachine\.x +gone +hooks\.runtime\.cluster\.x-k8s\.io\/v1alpha1, Hook=UpdateMachine is not in v1\.11: it does not have this hook$/,
    )
    expect(await hooks('preflight', '--catalog', 'v0')).toMatchObject({
      code: 2,
      err: expect.stringContaining('there is no catalog v0'),
    })

    // A document such as upstream publishes with its releases, for a fictitious release.
    const published = join(folder, 'runtime-sdk-openapi.yaml')
    const { [`/${apiVersion}/updatemachine/{name}`]: _, ...paths } = hooksOpenApi(hookCatalog, 'v1.20.0').paths
    writeFileSync(published, JSON.stringify({ info: { version: 'v1.20.0' }, paths }))
    await client.create(ExtensionConfig, { metadata: { name: 'y' }, spec: { clientConfig: { url: 'https://y' } } })
    expect(await hooks('preflight', '--catalog', published)).toEqual({
      code: 1,
      out: expect.stringMatching(
        /updatemachine\.x +gone .*, Hook=UpdateMachine is not in v1\.20\.0: it does not have this hook$/,
      ),
      err: 'capstan: ExtensionConfig y is not checked: its status has no handlers, because it was not discovered yet or has none',
    })
    expect(JSON.parse((await hooks('preflight', '-o', 'json')).out)).toMatchObject({
      handlers: 2,
      findings: [],
      undiscovered: ['y'],
    })
    await client.delete(ExtensionConfig, { name: 'y' })
    expect(await hooks('preflight', '--catalog', kubeconfig)).toMatchObject({
      code: 2,
      err: expect.stringContaining('the file names no hooks\nExpected the OpenAPI document of a release'),
    })

    const requestHook = { apiVersion: 'hooks.provider.example.com/v1', hook: 'BeforeHostProvision' }
    const body = { status: { handlers: [{ name: 'inventory.x', requestHook }] } }
    await client.patch(ExtensionConfig, { name: 'x' }, { type: 'merge', body }, { subresource: 'status' })
    expect(await hooks('preflight')).toMatchObject({ code: 1, out: expect.stringContaining('inventory.x   gone') })
    expect(await hooks('preflight', ...providerHooksFlags)).toMatchObject({ code: 0, out: '1 handler, which this release calls' })
    // A deprecated version is listed, and still called.
    const older = { ...requestHook, apiVersion: 'hooks.provider.example.com/v1beta1' }
    const deprecated = { status: { handlers: [{ name: 'inventory.x', requestHook: older }] } }
    await client.patch(ExtensionConfig, { name: 'x' }, { type: 'merge', body: deprecated }, { subresource: 'status' })
    expect(await hooks('preflight', ...providerHooksFlags)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^inventory\.x +deprecated +.* is deprecated since v0\.2\.0$/m),
    })
    // The ExtensionConfig would block the Clusters of other tests.
    await client.delete(ExtensionConfig, { name: 'x' })
  })

  /** Watches the Clusters of a namespace; resolves with the first that is as expected. */
  async function clusterOnce(namespace: string, isExpected: (cluster: Cluster) => boolean): Promise<Cluster> {
    const watchAbort = new AbortController()
    const signal = AbortSignal.any([AbortSignal.timeout(100_000), watchAbort.signal])
    for await (const { object } of await client.watch(Cluster, { namespace, signal })) {
      if (!isExpected(object)) continue
      watchAbort.abort()
      return object
    }
    throw new Error(`The Clusters in ${namespace} were not as expected in time`)
  }

  test('hooks waiting and hooks retry include a Cluster that is blocked by an ExtensionConfig that was never discovered', async () => {
    await client.create(Namespace, { metadata: { name: 'guarded' } })
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'guarded' } }
    await client.create(ExtensionConfig, {
      metadata: { name: 'never' },
      spec: { clientConfig: { url: 'https://127.0.0.1:1' }, namespaceSelector },
    })
    await createFrom(client, new URL('../../../lab/demo/class.yaml', import.meta.url))
    const classRef = { name: 'demo', namespace: 'default' }
    await client.create(Cluster, {
      metadata: { name: 'demo', namespace: 'guarded' },
      spec: { topology: { classRef, version: 'v1.36.0', controlPlane: { replicas: 1 } } },
    })
    await clusterOnce('guarded', (cluster) => waitingHooks(cluster).length > 0)

    const [, row] = (await hooks('waiting', '-n', 'guarded')).out.split('\n')
    expect(row).toMatch(
      /^guarded +demo +BeforeClusterCreate +<any of never> +\d+s +backing off +0 +failed to get extension handlers .*ExtensionConfig "never" has never been discovered: .*connection refused/,
    )
    expect(JSON.parse((await hooks('waiting', '-n', 'guarded', '-o', 'json')).out)).toMatchObject({
      namespace: 'guarded',
      cluster: 'demo',
      hook: 'BeforeClusterCreate',
      extensionConfig: 'never',
      handlers: [],
      calls: 0,
    })
    expect(await hooks('retry', 'demo', '-n', 'guarded')).toMatchObject({
      code: 0,
      out: 'Cluster guarded/demo: BeforeClusterCreate will be called again',
    })
    const retried = (cluster: Cluster) => cluster.metadata.annotations?.['runtime.capstan.dev/retry-hooks'] !== undefined
    const { metadata } = await clusterOnce('guarded', (cluster) => !retried(cluster))
    expect(metadata.annotations).toHaveProperty([WaitingHooksAnnotation])

    // After the deletion of the ExtensionConfig, the Cluster no longer waits.
    await client.delete(ExtensionConfig, { name: 'never' })
    await clusterOnce('guarded', ({ spec }) => spec.infrastructureRef !== undefined)
    expect((await hooks('waiting', '-n', 'guarded')).out).toBe('1 Cluster, which waits for no hook')
    expect((await hooks('retry', 'demo', '-n', 'guarded')).out).toBe(
      'Cluster guarded/demo: no hook blocks it or its Machines; calls that block its MachineDeployments will be repeated',
    )
    await client.delete(Cluster, { namespace: 'guarded', name: 'demo' })
  })

  test('hooks waiting and hooks retry print line breaks and control characters of a record as spaces in text, and as escapes in JSON', async () => {
    const evil = '\n\u001b[2J\u001b]0;title\u0007\r\u009b31m\u202edemo'
    const record = {
      hook: `Before${evil}`,
      handlers: [`gate${evil}`],
      since: '2026-01-01T00:00:00Z',
      calls: 1,
      message: `first${evil}\nsecond`,
    }
    await client.create(Namespace, { metadata: { name: 'evil' } })
    await client.create(Cluster, {
      // Users can write any text to the annotation.
      metadata: {
        name: 'demo',
        namespace: 'evil',
        annotations: { [WaitingHooksAnnotation]: JSON.stringify([{ hook: 'incomplete' }, record, 7]) },
      },
      spec: { paused: true, infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalCluster', name: 'demo' } },
    })
    const listed = await hooks('waiting', '-n', 'evil')
    const retried = await hooks('retry', 'demo', '-n', 'evil')
    expect(listed.out.split('\n')).toHaveLength(2)
    expect(listed.out).toMatch(/ first \[2J \]0;title 31m demo second$/)
    expect(retried.out).toBe('Cluster evil/demo: Before [2J ]0;title 31m demo will be called again')
    const json = (await hooks('waiting', '-n', 'evil', '-o', 'json')).out
    expect(JSON.parse(json)).toMatchObject(record)
    for (const text of [listed.out, retried.out, json]) expect(text).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u)
    await client.delete(Cluster, { namespace: 'evil', name: 'demo' })
  })
})
