/**
 * clusterctl installs Capstan from the repository that `capstan manifests --output-dir` writes, upgrades it to a newer release, and
 * deletes it, on the embedded API server and on the real API server. Pods do not run.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { coreKinds } from '@capstan/api'
import { type Client, CustomResourceDefinition, type Kind, type KubeObject, resourceName } from '@capstan/kube'
import { localKinds } from '@capstan/local'
import { stringify } from 'yaml'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { Checks, runCapstan } from './processes/capstan-process.ts'
import { certManagerDefinition } from './clusterctl.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Suite } from './shared/suite.ts'
import { clusterctlOn } from './upstream/clusterctl.ts'
import { install } from './upstream/managers.ts'

const releases = ['v0.1.0', 'v0.1.1'] as const
const providers = [
  {
    provider: 'core',
    name: 'cluster-api',
    type: 'CoreProvider',
    label: 'cluster-api',
    file: 'core-components.yaml',
    namespace: 'capi-system',
  },
  {
    provider: 'local',
    name: 'local',
    type: 'InfrastructureProvider',
    label: 'infrastructure-local',
    file: 'infrastructure-components.yaml',
    namespace: 'capstan-local-system',
  },
] as const

export const clusterctlCapstanSuite: Suite = {
  shows: 'clusterctl init, upgrade and delete of Capstan itself, on the embedded API server and on the real one',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'clusterctl'],
  async run() {
    const checks = new Checks()
    await runLifecycleOn(await startCapstanApiServer({ progress: console.log }), checks)
    await runLifecycleOn(await startRealApiServer({ progress: console.log }), checks)
    return checks
  },
}

async function runLifecycleOn(started: RunningApiServer, checks: Checks): Promise<void> {
  await using apiServer = started
  const client = apiServer.client()
  const config = await writeRepository(apiServer.folder)
  // While these CRDs are served, clusterctl assumes that cert-manager is installed.
  await install(client, ['certificates', 'issuers'].map(certManagerDefinition))
  const clusterctl = await clusterctlOn(apiServer)
  const run = async (...args: readonly string[]) => {
    const startedAt = performance.now()
    const { out, stderr } = await clusterctl.run(...args, '--config', config)
    console.log(`${apiServer.name}: clusterctl ${args.join(' ')} took ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
    return out + stderr
  }
  const check = (description: string, isTrue: boolean, actual?: unknown) =>
    checks.check(`${apiServer.name}: ${description}`, isTrue, actual)

  const [first, second] = releases
  const firstReleases = providers.map(({ name }) => `${name}:${first}`)
  await run(
    'init',
    '--core',
    firstReleases[0]!,
    '--infrastructure',
    firstReleases[1]!,
    '--bootstrap',
    '-',
    '--control-plane',
    '-',
  )
  check(
    'init installs both providers',
    equalLists(await installedReleases(client), [first, first]),
    await installedReleases(client),
  )
  const { items } = await client.list(CustomResourceDefinition)
  const labelByName = new Map(items.map(({ metadata }) => [metadata.name, metadata.labels?.['clusterctl.cluster.x-k8s.io']]))
  const missing = [...coreKinds, ...localKinds].map(resourceName).filter((name) => labelByName.get(name) !== '')
  check('init sets the label of clusterctl on the CustomResourceDefinition of every kind', missing.length === 0, missing)

  const plan = await run('upgrade', 'plan')
  check('upgrade plan finds the newer release', plan.includes(second), plan)
  await run('upgrade', 'apply', '--contract', 'v1beta2')
  check(
    'upgrade apply installs the newer release',
    equalLists(await installedReleases(client), [second, second]),
    await installedReleases(client),
  )
  const images = (await client.list(Deployment)).items.map((deployment) => deployment.spec.template.spec.containers[0]!.image)
  check(
    'the upgraded Deployments use the new image',
    images.length === 2 && images.every((image) => image.endsWith(second)),
    images,
  )

  for (const [index, flag] of ['--core', '--infrastructure'].entries()) {
    const { namespace } = providers[index]!
    const otherNamespaceManifests = await run(
      'generate',
      'provider',
      flag,
      firstReleases[index]!,
      '--target-namespace',
      'elsewhere',
    )
    const lines = otherNamespaceManifests.split('\n').filter((line) => line.includes(namespace))
    check(
      `--target-namespace replaces ${namespace} everywhere`,
      otherNamespaceManifests.includes('namespace: elsewhere') && lines.length === 0,
      lines,
    )
  }

  await run('delete', '--all')
  check('delete removes both providers', (await installedReleases(client)).length === 0, await installedReleases(client))
  const remaining = (await client.list(Deployment)).items.map(({ metadata }) => metadata.name)
  check('delete removes the Deployments of both providers', remaining.length === 0, remaining)
}

const equalLists = (a: readonly string[], b: readonly string[]): boolean => a.join() === b.join()

interface Versioned extends KubeObject {
  readonly version: string
}
const Provider: Kind<Versioned> = {
  group: 'clusterctl.cluster.x-k8s.io',
  version: 'v1alpha3',
  kind: 'Provider',
  plural: 'providers',
  scope: 'Namespaced',
}
interface Deployed extends KubeObject {
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } } }
}
const Deployment: Kind<Deployed> = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  scope: 'Namespaced',
}

const installedReleases = async (client: Client): Promise<string[]> =>
  (await client.list(Provider)).items.map(({ version }) => version)

/**
 * Writes a clusterctl repository with both releases of both providers, using `capstan manifests`, and a configuration of clusterctl that
 * refers to the repository.
 *
 * @returns the path of the configuration
 */
async function writeRepository(folder: string): Promise<string> {
  const repositoryFolder = join(folder, 'repository')
  mkdirSync(repositoryFolder)
  for (const { provider } of providers)
    for (const release of releases) {
      const image = `registry.example/capstan:${release}`
      const { code, stderr } = await runCapstan([
        'manifests',
        provider,
        '--release',
        release,
        '--image',
        image,
        '--output-dir',
        repositoryFolder,
      ])
      if (code !== 0) throw new Error(`capstan manifests ${provider} ended with ${code}: ${stderr}`)
    }
  const config = join(folder, 'clusterctl.yaml')
  const entries = providers.map(({ name, type, label, file }) => {
    // There is no folder `latest`: for this name, clusterctl uses the newest release, from the names of the provider's folders.
    const url = `file://${join(repositoryFolder, label, 'latest', file)}`
    return { name, type, url }
  })
  writeFileSync(config, stringify({ providers: entries }))
  return config
}
