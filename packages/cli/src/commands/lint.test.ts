import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installKinds } from '@capstan/controller'
import { type Client, ClusterRole, createClient, systemClock, systemRandom, type Transport } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { localKinds } from '@capstan/local'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { runToEnd, start, type Started } from '../test-io.ts'

const repository = fileURLToPath(new URL('../../../..', import.meta.url))

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-lint-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (file: string, text: string): string => {
  mkdirSync(join(folder, file, '..'), { recursive: true })
  writeFileSync(join(folder, file), text)
  return join(folder, file)
}

/**
 * Returns a CRD with one version in the group of BootstrapConfigs. A kind with the schema `status` and its template with the schema
 * `template`, both with `label` as labels, satisfy all rules of levels MUST and SHOULD. By default, the CRD has no labels, like the CRDs
 * that controller-gen writes by default.
 */
const config = (kind: string, schema: string, labels = '') => `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${kind.toLowerCase()}s.bootstrap.cluster.x-k8s.io
  ${labels}
spec:
  group: bootstrap.cluster.x-k8s.io
  names: {kind: ${kind}, plural: ${kind.toLowerCase()}s, listKind: ${kind}List}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: ${schema}
    subresources: {status: {}}
`
const status =
  '{status: {type: object, properties: {initialization: {type: object, properties: {dataSecretCreated: {type: boolean}}}, dataSecretName: {type: string}}}}'
const template =
  '{spec: {type: object, properties: {template: {type: object, properties: {spec: {type: object}, metadata: {type: object, properties: {labels: {type: object}, annotations: {type: object}}}}}}}}'
const label = 'labels: {cluster.x-k8s.io/v1beta2: v1}'
const sources = (labels = '') => config('FooConfig', status, labels) + config('FooConfigTemplate', template, labels)

test('the CustomResourceDefinitions of the local provider satisfy every rule', async () => {
  const { code, out } = await runToEnd(['lint', join(repository, 'config/crd'), '--level', 'MAY'])
  expect(out).toMatch(/^No findings: 10 kinds, \d+ rules checked/)
  expect(code).toBe(0)
})

test('prints a violated MUST rule with field, rule and correction, with --why also the reason, and exits with 1', async () => {
  const file = write('components.yaml', sources(label).replace('dataSecretName', 'secretName'))
  const { code, out } = await runToEnd(['lint', file])
  expect(code).toBe(1)
  const lines = out.split('\n')
  expect(lines[0]).toMatch(/^LEVEL +RULE +OBJECT +FIELD$/)
  expect(lines[1]).toMatch(
    /^MUST +bootstrap-config\.data-secret +fooconfigs\.bootstrap\.cluster\.x-k8s\.io +spec\.versions\[0\]\.schema\.openAPIV3Schema\.properties\.status$/,
  )
  expect(out).toContain(
    'MUST bootstrap-config.data-secret: FooConfig v1 claims contract v1beta2: status.dataSecretName is missing',
  )
  expect(out).toContain(`  at    ${file}:2 `)
  expect(out).toContain('bootstrap-config#bootstrapconfig-data-secret')
  expect(out).toContain('  edit  Add status.dataSecretName (string)')
  expect(out).not.toContain('  why ')
  expect((await runToEnd(['lint', file, '--why'])).out).toContain('  why   Core copies the name to the Machine')
})

test('exits with 0 for findings below MUST, and prints the findings that --level selects', async () => {
  const file = write(
    'crd.yaml',
    sources('labels: {cluster.x-k8s.io/v1beta1: v1}').replace('initialization:', 'ready: {type: boolean}, initialization:'),
  )
  const { code, out } = await runToEnd(['lint', file])
  expect(code).toBe(0)
  expect(out).toContain('SHOULD   newest-contract')
  expect(out).not.toContain('printer-columns')
  expect((await runToEnd(['lint', file, '--level', 'MUST'])).out).toMatch(/^No findings/)
  expect((await runToEnd(['lint', file, '--level', 'MAY'])).out).toContain('printer-columns')
})

test('checks the resources of a kustomization with its labels and its conversion patch', async () => {
  const withColumns = sources().replaceAll(
    '    subresources',
    '    additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}]\n    subresources',
  )
  const withTwoVersions = withColumns.replace(
    '  versions:\n',
    '  versions:\n  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}, subresources: {status: {}}}\n',
  )
  write('config/crd/bases/crds.yaml', withTwoVersions)
  const bare = await runToEnd(['lint', folder])
  expect(bare.code).toBe(1)
  expect(bare.out).toContain('contract-label')
  expect(bare.out).toContain('conversion')

  write(
    'config/crd/kustomization.yaml',
    'labels:\n- pairs: {cluster.x-k8s.io/v1beta2: v1}\nresources: [bases/crds.yaml]\npatches:\n- path: patches/webhook.yaml\n',
  )
  write(
    'config/crd/patches/webhook.yaml',
    'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: fooconfigs.bootstrap.cluster.x-k8s.io}\nspec: {conversion: {strategy: Webhook}}\n',
  )
  const completed = await runToEnd(['lint', folder])
  expect(completed.out).toMatch(/^No findings: 2 kinds/)
  expect(completed.code).toBe(0)
})

test('prints the findings as JSON and SARIF', async () => {
  const file = write('crd.yaml', sources(label).replace('dataSecretName', 'secretName'))
  const json = await runToEnd(['lint', file, '-o', 'json'])
  expect(json.code).toBe(1)
  expect(JSON.parse(json.out)).toMatchObject({
    findings: [
      { rule: 'bootstrap-config.data-secret', level: 'MUST', object: 'fooconfigs.bootstrap.cluster.x-k8s.io', file, line: 2 },
    ],
  })
  expect(JSON.parse((await runToEnd(['lint', file, '-o', 'sarif'])).out)).toMatchObject({
    version: '2.1.0',
    runs: [{ results: [{ ruleId: 'bootstrap-config.data-secret', level: 'error' }] }],
  })
})

test('skips files of a folder that are not YAML, and names the first', async () => {
  write('crds.yaml', sources(label))
  const chart = write('chart/templates/deployment.yaml', '{{- if .Values.enabled }}\nkind: Deployment\n{{- end }}\n')
  const { code, err } = await runToEnd(['lint', folder])
  expect(code).toBe(0)
  expect(err).toBe(`capstan: skipped files that are not YAML: 1; the first is ${chart}`)
})

test('reads the JSON files of a folder that contain Kubernetes objects, and ignores other JSON files', async () => {
  const documents = parseAllDocuments(sources(label).replace('dataSecretName', 'secretName'))
  write('crds.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: documents.map((document) => document.toJS()) }))
  write('tsconfig.json', '{ "extends": "./a", // not JSON\n')
  const { code, out, err } = await runToEnd(['lint', folder])
  expect([code, err]).toEqual([1, ''])
  expect(out).toContain(`at    ${join(folder, 'crds.json')}:1 `)
})

test('if the folder has Markdown files, reports a variable without a default that none of them mentions', async () => {
  write('crds.yaml', sources(label))
  write('secret.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: foo}\nstringData: {token: "${FOO_TOKEN}"}\n')
  const message = 'No documentation mentions variable FOO_TOKEN'
  expect((await runToEnd(['lint', folder])).out).not.toContain(message)
  write('docs/guide.md', 'No variables.')
  const undocumented = await runToEnd(['lint', folder])
  expect(undocumented.out).toContain(message)
  expect(undocumented.code).toBe(0)
  write('README.md', 'Set `FOO_TOKEN`.')
  expect((await runToEnd(['lint', folder])).out).not.toContain(message)
})

describe('a URL', () => {
  const releases = 'https://example.com/foo/provider/releases'
  const components = sources(label).replaceAll('labels: {', 'labels: {cluster.x-k8s.io/provider: bootstrap-foo, ')
  const metadata = (minor: number) =>
    `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: ${minor}, contract: v1beta2}]\n`

  const serve = (files: { readonly [url: string]: string }) =>
    vi.stubGlobal('fetch', async (url: string) => new Response(files[url] ?? 'none', { status: url in files ? 200 : 404 }))
  afterEach(() => vi.unstubAllGlobals())

  test('of a file is read', async () => {
    serve({ 'https://example.com/crds.yaml': sources(label).replace('dataSecretName', 'secretName') })
    const { code, out } = await runToEnd(['lint', 'https://example.com/crds.yaml'])
    expect(code).toBe(1)
    expect(out).toContain('  at    https://example.com/crds.yaml:2 ')
  })

  test('of a release is read with its metadata.yaml, which must have a series for the release', async () => {
    const download = `${releases}/download/v1.2.0`
    serve({ [`${download}/bootstrap-components.yaml`]: components, [`${download}/metadata.yaml`]: metadata(2) })
    const { code, out } = await runToEnd(['lint', `${releases}/tag/v1.2.0`])
    expect(out).toMatch(/^No findings: 2 kinds/)
    expect(code).toBe(0)
    serve({ [`${download}/bootstrap-components.yaml`]: components, [`${download}/metadata.yaml`]: metadata(1) })
    expect((await runToEnd(['lint', download])).out).toContain('No series covers release v1.2.0')
  })

  test('is a usage error for a release with several providers, a release without a provider, and a missing file', async () => {
    const download = `${releases}/download/v1.2.0`
    serve({ [`${download}/bootstrap-components.yaml`]: components, [`${download}/control-plane-components.yaml`]: components })
    const several = await runToEnd(['lint', `${releases}/tag/v1.2.0`])
    expect(several.err).toContain(`Lint one of ${download}/bootstrap-components.yaml, ${download}/control-plane-components.yaml.`)
    expect(several.code).toBe(2)
    expect((await runToEnd(['lint', `${releases}/tag/v9.9.9`])).err).toContain('the release has none of the files')
    expect((await runToEnd(['lint', 'https://example.com/none.yaml'])).err).toContain(
      'https://example.com/none.yaml: no such file',
    )
  })
})

describe('the URL of a server', () => {
  const big = Buffer.alloc(1024 * 1024, '#')
  const responses: Readonly<Record<string, (response: ServerResponse) => void>> = {
    '/release': (response) => response.writeHead(302, { location: '/crds.yaml' }).end(),
    '/crds.yaml': (response) => response.end(sources(label)),
    '/endless': (response) => response.writeHead(302, { location: '/endless' }).end(),
    '/busy': (response) => response.writeHead(503).end('busy'),
    '/page': (response) => response.end('<!doctype html>\n<title>Releases: all</title>'),
    '/broken': (response) => response.writeHead(200, { 'content-length': 100 }).write('a: b', () => response.destroy()),
    '/large': (response) => {
      const send = (remaining: number): boolean => remaining > 0 && response.write(big, () => send(remaining - 1))
      send(40)
    },
  }
  const listen = async (server: Server): Promise<string> => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  let server: Server
  let url = ''
  let closedUrl = ''
  beforeAll(async () => {
    server = createServer((request, response) => responses[request.url!]!(response))
    url = await listen(server)
    const closedServer = createServer()
    closedUrl = await listen(closedServer)
    await new Promise((resolve) => closedServer.close(resolve))
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  test('that redirects, as GitHub does for releases, is read from the new location', async () => {
    const { code, out } = await runToEnd(['lint', `${url}/release`])
    expect(out).toMatch(/^No findings: 2 kinds/)
    expect(code).toBe(0)
  })

  test.each([
    ['redirects without end', '/endless', 'redirect count exceeded'],
    ['fails', '/busy', 'the server responded with 503'],
    ['sends a page instead of manifests', '/page', 'expected YAML'],
    ['closes the connection', '/broken', 'other side closed'],
    ['sends too much', '/large', 'manifests have more than 32 MiB'],
  ])('that %s is a usage error with the reason', async (_, path, reason) => {
    const { code, err } = await runToEnd(['lint', `${url}${path}`])
    expect(err).toMatch(new RegExp(`^capstan: ${url}${path}: ${reason}`))
    expect(code).toBe(2)
  })

  test('that does not exist is a usage error with the reason', async () => {
    const { code, err } = await runToEnd(['lint', `${closedUrl}/crds.yaml`])
    expect(err).toContain(`${closedUrl}/crds.yaml: connect ECONNREFUSED 127.0.0.1:`)
    expect(code).toBe(2)
  })

  test('that does not respond in time is a usage error that names the time limit', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new DOMException('aborted', 'TimeoutError')))
    const { code, err } = await runToEnd(['lint', `${url}/crds.yaml`])
    vi.unstubAllGlobals()
    expect(err).toContain(`${url}/crds.yaml: no complete response within 60 s`)
    expect(code).toBe(2)
  })
})

describe('a kubeconfig', () => {
  let kubeconfig = ''
  let server: Started
  let client: Client
  let transport: Transport
  beforeAll(async () => {
    kubeconfig = join(mkdtempSync(join(tmpdir(), 'capstan-lint-')), 'kubeconfig')
    server = start(['apiserver', '--secure-port', '0', '--kubeconfig', kubeconfig])
    await server.line(/ready/)
    const context = { clock: systemClock, random: systemRandom }
    transport = httpsTransport(await loadKubeconfig(kubeconfig), { ...context, userAgent: 'test' })
    client = createClient(transport)
    await installKinds(client, localKinds, context)
  })
  afterAll(async () => {
    transport.close()
    await server.interrupt()
    rmSync(join(kubeconfig, '..'), { recursive: true })
  })

  test('makes lint check the kinds and roles of its cluster', async () => {
    const role = await client.create(ClusterRole, {
      metadata: { name: 'local' },
      rules: [{ apiGroups: [...new Set(localKinds.map(({ group }) => group))], resources: ['*', '*/finalizers'], verbs: ['*'] }],
    })
    const before = await runToEnd(['lint', kubeconfig])
    expect(before.out).toContain(`MUST foreign-group-role: Core is not allowed to`)
    expect(before.out).toContain('10 MUST, 0 SHOULD, 0 MAY: 10 kinds, ')
    expect(before.code).toBe(1)
    const labels = { 'cluster.x-k8s.io/aggregate-to-manager': 'true' }
    await client.patch(ClusterRole, role.metadata, { type: 'merge', body: { metadata: { labels } } })
    const after = await runToEnd(['lint', kubeconfig])
    expect(after.out).toMatch(/^No findings: 10 kinds/)
    expect(after.code).toBe(0)
  })
})

test('a TypeScript provider without manifests is a usage error that names the command to print them', async () => {
  write('package.json', JSON.stringify({ scripts: { crds: 'node main.ts --crds' } }))
  const { code, err } = await runToEnd(['lint', folder])
  expect(err).toContain('run npm run --silent crds > crds.json, and then capstan lint crds.json')
  expect(code).toBe(2)
})

test.each([
  ['a path that does not exist', () => [join(folder, 'none')], /none: no such file or folder/],
  ['a folder without a provider', () => [folder], /no CustomResourceDefinition of a provider/],
  [
    'a CustomResourceDefinition that is not YAML',
    () => [write('a.yaml', 'kind: CustomResourceDefinition\nspec: {')],
    /a\.yaml: expected YAML/,
  ],
  [
    'a CustomResourceDefinition without versions',
    () => [write('a.yaml', sources(label).replace(/ {2}versions:[^]*/, ''))],
    /a\.yaml:2: CustomResourceDefinition "fooconfigs\.bootstrap\.cluster\.x-k8s\.io": spec\.versions: expected a list/,
  ],
  [
    'a value of --release that is not a version',
    () => [write('a.yaml', sources(label)), '--release', 'next'],
    /expected a version such as v1\.2\.3/,
  ],
])('%s is a usage error: exit code 2', async (_, args, message) => {
  const { code, err } = await runToEnd(['lint', ...args()])
  expect(err).toMatch(message)
  expect(code).toBe(2)
})
