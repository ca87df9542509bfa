import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CustomResourceDefinition, type PolicyRule, resourceName } from '@capstan/kube'
import { type ProviderName, providerKinds } from '@capstan/lab'
import { afterAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { Manifest } from '../manifests/components.ts'
import { runToEnd } from '../test-io.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-manifests-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const printedManifests = async (...argv: string[]): Promise<Manifest[]> => {
  const { code, out, err } = await runToEnd(['manifests', ...argv])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return parseAllDocuments(out).map((document) => document.toJS() as Manifest)
}

test('the components of the local provider have no finding of capstan lint', async () => {
  const { out: components } = await runToEnd(['manifests', 'local'])
  const file = join(folder, 'infrastructure-components.yaml')
  writeFileSync(file, components)
  const { code, out } = await runToEnd(['lint', file])
  expect(out).toMatch(/^No findings: 10 kinds, /)
  expect(code).toBe(0)
})

describe.each(['core', 'local'])('the components of %s', (provider) => {
  test.each(['self-managed', 'cert-manager'])(
    'satisfy the rules of clusterctl with --certificates %s, and contain a Certificate only with cert-manager',
    async (certificates) => {
      const objects = await printedManifests(provider, '--certificates', certificates)
      const namespaces = objects.filter(({ kind }) => kind === 'Namespace')
      expect(namespaces).toHaveLength(1)
      for (const { metadata } of objects)
        if (metadata.namespace !== undefined) expect(metadata.namespace, metadata.name).toBe(namespaces[0]!.metadata.name)
      const labels = objects.map(({ metadata }) => (metadata.labels as { [name: string]: string })['cluster.x-k8s.io/provider'])
      expect(new Set(labels)).toEqual(new Set([provider === 'core' ? 'cluster-api' : 'infrastructure-local']))
      const [deployment] = objects.filter(({ kind }) => kind === 'Deployment') as unknown as [
        { spec: { template: { spec: { containers: { name: string }[] } } } },
      ]
      expect(deployment.spec.template.spec.containers.map(({ name }) => name)).toEqual(['manager'])
      expect(objects.some(({ kind }) => kind === 'Certificate')).toBe(certificates === 'cert-manager')
    },
  )

  test.each(['self-managed', 'cert-manager'])(
    'serve every version of each kind, and convert versions by webhook, with --certificates %s',
    async (certificates) => {
      const objects = await printedManifests(provider, '--certificates', certificates)
      const { metadata: service } = objects.find(({ kind }) => kind === 'Service')!
      const definitions = objects.filter(
        ({ kind }) => kind === 'CustomResourceDefinition',
      ) as unknown as CustomResourceDefinition[]
      expect(definitions.length).toBeGreaterThan(0)
      for (const { metadata, spec } of definitions) {
        const [kind] = providerKinds[provider as ProviderName].filter((candidate) => resourceName(candidate) === metadata.name)
        const versions = spec.versions.filter(({ served }) => served).map(({ name }) => name)
        expect(versions, metadata.name).toEqual([kind!.version, ...kind!.versions.map((version) => version.kind.version)])
        if (versions.length === 1) continue
        expect(spec.conversion, metadata.name).toEqual({
          strategy: 'Webhook',
          webhook: {
            conversionReviewVersions: ['v1'],
            clientConfig: { service: { namespace: service.namespace, name: service.name, path: '/convert' } },
          },
        })
        // cert-manager injects the authority of the Certificate; without cert-manager, the manager writes its own authority.
        const [certificate] = objects.filter((object) => object.kind === 'Certificate')
        expect(metadata.annotations?.['cert-manager.io/inject-ca-from'], metadata.name).toBe(
          certificate && `${certificate.metadata.namespace}/${certificate.metadata.name}`,
        )
      }
      // Upstream serves these versions of a Cluster.
      const cluster = definitions.find(({ metadata }) => metadata.name === 'clusters.cluster.x-k8s.io')
      expect(cluster?.spec.versions.map(({ name }) => name)).toEqual(provider === 'core' ? ['v1beta2', 'v1beta1'] : undefined)
    },
  )

  test('name only their own webhook configurations in the rules of ClusterRoles', async () => {
    const objects = (await printedManifests(provider)) as unknown as { kind: string; rules?: PolicyRule[] }[]
    const rules = objects.filter(({ kind }) => kind === 'ClusterRole').flatMap((role) => role.rules ?? [])
    const allowedNames = rules
      .filter(({ resources }) => resources?.includes('mutatingwebhookconfigurations'))
      .flatMap((rule) => rule.resourceNames ?? [])
    expect(allowedNames).toEqual([`capstan-${provider}`])
  })

  test('start a manager with flags that it accepts', async () => {
    const objects = await printedManifests(provider)
    const [deployment] = objects.filter(({ kind }) => kind === 'Deployment') as unknown as [
      { spec: { template: { spec: { containers: { args: string[] }[] } } } },
    ]
    const { args } = deployment.spec.template.spec.containers[0]!
    const kubeconfig = join(folder, 'none')
    const { code, err } = await runToEnd([
      ...args.map((arg) => arg.replace('$(POD_IP)', '127.0.0.1').replace('$(POD_NAMESPACE)', 'default')),
      '--kubeconfig',
      kubeconfig,
    ])
    // This error shows that all flags were accepted: only the kubeconfig cannot be read.
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`Cannot read kubeconfig ${kubeconfig}`) })
  })

  test('do not name their namespace in the Pod template, because clusterctl --target-namespace does not change arguments', async () => {
    for (const certificates of ['self-managed', 'cert-manager']) {
      const objects = await printedManifests(provider, '--certificates', certificates)
      const namespace = objects.find(({ kind }) => kind === 'Namespace')!.metadata.name
      const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as { spec: { template: object } }
      const template = JSON.stringify(deployment.spec.template)
      expect(template).toContain('"--leader-elect-namespace=$(POD_NAMESPACE)"')
      expect(template).not.toContain(namespace)
    }
  })

  test('bind their ServiceAccount to roles that exist', async () => {
    const objects = await printedManifests(provider)
    const names = (kind: string) => objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name)
    const roles = [...names('Role'), ...names('ClusterRole')]
    for (const binding of objects.filter(({ kind }) => kind.endsWith('Binding'))) {
      const { roleRef, subjects } = binding as unknown as { roleRef: { name: string }; subjects: { name: string }[] }
      expect(roles).toContain(roleRef.name)
      expect(names('ServiceAccount')).toEqual(subjects.map(({ name }) => name))
    }
  })
})

test('--shards adds the argument --leader-elect-shards of the manager', async () => {
  const argsOf = (objects: readonly Manifest[]) => JSON.stringify(objects.find(({ kind }) => kind === 'Deployment'))
  expect(argsOf(await printedManifests('core', '--shards', '6'))).toContain('"--leader-elect-shards=6"')
  expect(argsOf(await printedManifests('core'))).not.toContain('shards')
})

test('--output-dir writes a repository for clusterctl: components and metadata in the folder LABEL/VERSION', async () => {
  const { out } = await runToEnd([
    'manifests',
    'local',
    '--release',
    'v1.2.3',
    '--output-dir',
    folder,
    '--image',
    'registry.example/capstan:v1.2.3',
  ])
  const releaseFolder = join(folder, 'infrastructure-local/v1.2.3')
  expect(out.split('\n')).toEqual([join(releaseFolder, 'infrastructure-components.yaml'), join(releaseFolder, 'metadata.yaml')])
  expect(parseAllDocuments(readFileSync(join(releaseFolder, 'metadata.yaml'), 'utf8'))[0]!.toJS()).toMatchObject({
    apiVersion: 'clusterctl.cluster.x-k8s.io/v1alpha3',
    kind: 'Metadata',
    releaseSeries: [{ major: 1, minor: 2, contract: 'v1beta2' }],
  })
  expect(readFileSync(join(releaseFolder, 'infrastructure-components.yaml'), 'utf8')).toContain(
    'image: registry.example/capstan:v1.2.3',
  )
})

test('--output-dir writes core to the folder cluster-api, the only name that clusterctl accepts for a core provider', async () => {
  const { out } = await runToEnd([
    'manifests',
    'core',
    '--release',
    'v1.2.3',
    '--output-dir',
    folder,
    '--image',
    'localhost/capstan',
  ])
  expect(out.split('\n')[0]).toBe(join(folder, 'cluster-api/v1.2.3/core-components.yaml'))
  expect(readFileSync(join(folder, 'cluster-api/v1.2.3/core-components.yaml'), 'utf8')).not.toContain('provider: capstan')
})

test.each([
  [['manifests', 'aws'], /core, local/],
  [['manifests', 'core', '--release', '1.2'], /expected a version such as v1\.2\.3/],
  [['manifests', 'core', '--replicas', '0'], /expected a number from 1 to 99/],
  [['manifests', 'core', '--shards', '0'], /expected a whole number from 1 to 60/],
  // clusterctl: "failed to fix image for container manager: couldn't parse image name: repository name must be canonical".
  [['manifests', 'core', '--output-dir', folder], /clusterctl accepts only images with a registry, not capstan:v/],
  [['manifests', 'core', '--output-dir', folder, '--image', 'team/capstan:v1'], /images with a registry, not team\/capstan:v1/],
  [['manifests', 'local', '--shards', '6'], /--shards is an option of the core provider/],
  [['manifests', 'core', '--certificates', 'none'], /self-managed, cert-manager/],
])('%j is rejected', async (argv, expectedError) => {
  expect(await runToEnd(argv)).toMatchObject({ code: 2, err: expect.stringMatching(expectedError) })
})

test('an output folder that is a file is reported by name', async () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  expect(await runToEnd(['manifests', 'core', '--output-dir', file, '--image', 'example.com/capstan'])).toMatchObject({
    code: 1,
    err: expect.stringContaining(file),
  })
})

test.runIf(existsSync('/proc/self'))(
  'an output folder in a file system that allows no creation is reported by name',
  async () => {
    const argv = ['manifests', 'core', '--output-dir', '/proc/capstan', '--image', 'example.com/capstan']
    expect(await runToEnd(argv)).toMatchObject({ code: 1, err: expect.stringContaining('/proc/capstan') })
  },
)
