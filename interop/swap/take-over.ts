/**
 * Our core takes over Clusters that upstream's core created, during a rollout, and upstream's core takes them back: no Machine is
 * replaced, and labels and taints that one core applied are changed and removed by the other.
 */
import { join } from 'node:path'
import { Cluster, Machine } from '@capstan/api'
import { type Client, messageOf, MutatingWebhookConfiguration, Namespace, ValidatingWebhookConfiguration } from '@capstan/kube'
import type { Checks } from '../capstan-process.ts'
import { type CapstanProcess, startCapstan } from '../capstan-process.ts'
import {
  atRest,
  awaited,
  createClass,
  createCluster,
  inventory,
  leftBehind,
  localKit,
  remove,
  scale,
  type Scene,
  type Wanted,
} from '../life/life.ts'
import type { ServedPlane } from '../plane.ts'
import { until } from '../until.ts'
import { components, type Managers, startManagers } from '../upstream/managers.ts'

const core = components.filter(({ tool }) => tool === 'capi-core')
const gates = 'ClusterTopology=true,RuntimeSDK=true,MachinePool=true,MachineTaintPropagation=true'

export async function liveThroughTakeOver(plane: ServedPlane, checks: Checks, progress: (line: string) => void): Promise<void> {
  const client = plane.client()
  const ours = (provider: 'core' | 'local') => {
    const flags = ['--kubeconfig', plane.kubeconfig, '--providers', provider, '--diagnostics-port', '0', '--log-level', 'error']
    const data = provider === 'local' ? ['--data', join(plane.folder, 'local')] : []
    return startCapstan(['manager', ...flags, ...data, '--webhook-port', '0'], /Manager ready/)
  }
  const running: { theirs?: Managers; core?: CapstanProcess; local?: CapstanProcess } = {}
  const toOurs = async () => {
    await running.theirs!.removeWebhooks()
    await running.theirs![Symbol.asyncDispose]()
    delete running.theirs
    running.core = await ours('core')
    await until(client, ValidatingWebhookConfiguration, 'webhooks of our core', (all) =>
      all.some(({ metadata }) => metadata.name === 'capstan-core'),
    )
    progress('our core has taken over')
  }
  const toTheirs = async () => {
    const { code } = await running.core!.stop()
    delete running.core
    checks.check('our core stops cleanly', code === 0, code)
    const left = await configurations(client)
    checks.check('and leaves no webhook configuration', !left.includes('capstan-core'), left)
    // Upstream's definitions are applied without --force-conflicts.
    running.theirs = await startManagers(plane, progress, { components: core, gates })
    progress("upstream's core has taken over")
  }
  try {
    running.theirs = await startManagers(plane, progress, { components: core, gates })
    running.local = await ours('local')
    const namespace = 'team'
    await client.create(Namespace, { metadata: { name: namespace } })
    const scene: Scene = { client, namespace, kit: localKit, checks, progress, limit: 300 }
    await createClass(scene)
    const before = await inventory(scene)
    const wanted: Wanted = { version: 'v1.33.0', controlPlane: 1, workers: 2 }
    const larger = { ...wanted, controlPlane: 3 }
    await Promise.all([
      createCluster(scene, 'plain', wanted),
      createCluster(scene, 'classy', wanted).then(() => scale(scene, 'classy', larger)),
    ])
    await metadata(scene, { labels: { keep: 'theirs', go: 'theirs' }, taint: true })
    progress("made by upstream's core")

    for (const [who, next] of [
      ['ours', toOurs],
      ['theirs', toTheirs],
    ] as const) {
      const machines = await uids(scene)
      await next()
      await atRest(scene, 'classy', larger)
      await atRest(scene, 'plain', wanted)
      // What the other core has applied is changed and removed by this one.
      await metadata(scene, { labels: { keep: who }, taint: false })
      await awaited(scene, Machine, `${who}: labels of Machines`, (all) =>
        workersOf(all).every((one) => one.metadata.labels?.keep === who && one.metadata.labels?.go === undefined),
      )
      await awaited(scene, Machine, `${who}: taints of Machines`, (all) =>
        workersOf(all).every(({ spec }) => !spec.taints?.some(({ key }) => key === 'interop')),
      )
      await atRest(scene, 'classy', larger)
      const kept = await uids(scene)
      checks.check(`no Machine is replaced: ${who}`, kept.join() === machines.join(), { machines, kept })
      await metadata(scene, { labels: { keep: who, go: who }, taint: true })
      await awaited(scene, Machine, `${who}: new labels of Machines`, (all) =>
        workersOf(all).every((one) => one.metadata.labels?.go === who),
      )
      progress(`labels and taints changed and removed by ${who}`)
    }

    // In the middle of a rollout, and of a deletion.
    const upgraded = { ...larger, version: 'v1.34.0' }
    await client.patch(
      Cluster,
      { namespace, name: 'classy' },
      { type: 'merge', body: { spec: { topology: { version: 'v1.34.0' } } } },
    )
    await awaited(scene, Machine, 'a Machine of v1.34.0', (all) => all.some(({ spec }) => spec.version === 'v1.34.0'))
    await client.delete(Cluster, { namespace, name: 'plain' })
    await toOurs()
    await atRest(scene, 'classy', upgraded)
    await awaited(scene, Cluster, 'plain is deleted', (all) => !all.some((one) => one.metadata.name === 'plain'))
    checks.check('our core ends the rollout and the deletion that were under way', true)
    await remove(scene, 'classy')
    const left = await leftBehind(scene, before)
    checks.check('nothing is left behind', left.length === 0, left)
  } catch (err) {
    for (const program of running.theirs?.programs ?? []) console.log(`--- ${program.name}\n${program.tail(12)}`)
    throw new Error(messageOf(err), { cause: err })
  } finally {
    await running.core?.kill()
    await running.local?.kill()
    await running.theirs?.[Symbol.asyncDispose]()
  }
}

/** Sets the metadata and taints of the workers of the Cluster with a class; nothing else stays. */
async function metadata(
  { client, namespace }: Scene,
  { labels, taint }: { readonly labels: { readonly [label: string]: string }; readonly taint: boolean },
): Promise<void> {
  const { spec } = await client.get(Cluster, { namespace, name: 'classy' })
  const [first] = spec.topology!.workers!.machineDeployments!
  const taints = [{ key: 'interop', value: 'yes', effect: 'NoSchedule', propagation: 'Always' }]
  const { taints: _, ...others } = first!
  const machineDeployments = [{ ...others, metadata: { labels }, ...(taint ? { taints } : {}) }]
  const body = { spec: { topology: { workers: { machineDeployments } } } }
  await client.patch(Cluster, { namespace, name: 'classy' }, { type: 'merge', body })
}

const workersOf = (all: readonly Machine[]) =>
  all.filter(
    ({ metadata, spec }) => spec.clusterName === 'classy' && metadata.labels?.['topology.cluster.x-k8s.io/deployment-name'],
  )

async function uids({ client, namespace }: Scene): Promise<string[]> {
  return (await client.list(Machine, { namespace })).items.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()
}

async function configurations(client: Client): Promise<string[]> {
  const { items: mutating } = await client.list(MutatingWebhookConfiguration)
  const { items: validating } = await client.list(ValidatingWebhookConfiguration)
  return [...mutating, ...validating].map(({ metadata: { name } }) => name)
}
