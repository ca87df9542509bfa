/**
 * Our core takes over Clusters that upstream's core has created, and upstream's core takes them back. The first two takeovers occur while
 * the controllers are idle: no Machine may be replaced, and no field outside of the status, except the resourceVersion, may change its value
 * or its manager. After each of these takeovers, the new core must be able to change and remove labels, taints and replicas that the
 * previous core has applied. The last two takeovers occur during a rollout and a deletion, after the previous core was killed: no Machine of
 * the new version may be replaced.
 */
import { join } from 'node:path'
import { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import {
  type Client,
  type Kind,
  type KubeObject,
  messageOf,
  MutatingWebhookConfiguration,
  Namespace,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import { LocalBootstrapConfig, LocalMachine } from '@capstan/local'
import type { Checks } from '../processes/capstan-process.ts'
import { type CapstanProcess, runCapstan, startCapstan } from '../processes/capstan-process.ts'
import {
  waitUntilSettled,
  waitFor,
  createClass,
  createCluster,
  clusterApiObjects,
  inventory,
  undeletedObjects,
  localProvider,
  remove,
  scale,
  type LifeContext,
  type DesiredState,
} from '../life/life.ts'
import type { RunningApiServer } from '../processes/api-server.ts'
import { until } from '../shared/until.ts'
import { components, type Managers, startManagers } from '../upstream/managers.ts'
import { changes, hasExactly, identity, type ComparedFields, comparedFields, replaced } from './compared-fields.ts'

const core = components.filter(({ tool }) => tool === 'capi-core')
const gates = 'ClusterTopology=true,RuntimeSDK=true,MachinePool=true,MachineTaintPropagation=true'

/** Runs the takeovers on one API server. */
export async function runTakeOver(apiServer: RunningApiServer, checks: Checks, progress: (line: string) => void): Promise<void> {
  const client = apiServer.client()
  const startOurs = (provider: 'core' | 'local') => {
    const flags = [
      '--kubeconfig',
      apiServer.kubeconfig,
      '--providers',
      provider,
      '--diagnostics-port',
      '0',
      '--log-level',
      'error',
    ]
    const data = provider === 'local' ? ['--data', join(apiServer.folder, 'local')] : []
    return startCapstan(['manager', ...flags, ...data, '--webhook-port', '0'], /Manager ready/)
  }
  const running: { theirs?: Managers; core?: CapstanProcess; local?: CapstanProcess } = {}
  const switchToOurs = async (previous: 'stopped' | 'killed') => {
    if (previous === 'killed') await Promise.all(running.theirs!.programs.map((program) => program.kill()))
    await running.theirs!.removeWebhooks()
    await running.theirs![Symbol.asyncDispose]()
    delete running.theirs
    running.core = await startOurs('core')
    await until(client, ValidatingWebhookConfiguration, 'webhooks of our core', (all) =>
      all.some(({ metadata }) => metadata.name === 'capstan-core'),
    )
    progress('our core has taken over')
  }
  const switchToTheirs = async (previous: 'stopped' | 'killed') => {
    let isCommandNeeded = previous === 'killed'
    if (previous === 'killed') await running.core!.kill()
    else {
      const { code, stderr } = await running.core!.stop()
      checks.check('our core stops cleanly', code === 0, code)
      // While it stops, a manager has one second to remove its webhook configurations. On a busy machine this may take longer: then the
      // manager logs the command that removes them.
      isCommandNeeded = stderr.includes('run capstan manager --remove-webhooks')
    }
    delete running.core
    if (isCommandNeeded) {
      progress('webhooks are removed with --remove-webhooks')
      const flags = ['--providers', 'core', '--kubeconfig', apiServer.kubeconfig, '--remove-webhooks']
      const { code, stderr } = await runCapstan(['manager', ...flags])
      checks.check('--remove-webhooks succeeds', code === 0, stderr)
    }
    const remaining = await webhookConfigurationNames(client)
    checks.check(`the webhook configurations of our ${previous} core are removed`, !remaining.includes('capstan-core'), remaining)
    // `startManagers` applies upstream's CustomResourceDefinitions without `force`: this fails with a conflict if our core still manages a
    // field that upstream's manifests change.
    running.theirs = await startManagers(apiServer, progress, { components: core, gates })
    progress("upstream's core has taken over")
  }
  try {
    running.theirs = await startManagers(apiServer, progress, { components: core, gates })
    running.local = await startOurs('local')
    const namespace = 'team'
    await client.create(Namespace, { metadata: { name: namespace } })
    const context: LifeContext = { client, namespace, provider: localProvider, checks, progress, limit: 300 }
    await createClass(context)
    const before = await inventory(context)
    const desired: DesiredState = { version: 'v1.33.0', controlPlane: 1, workers: 2, pool: 2 }
    const larger: DesiredState = { ...desired, controlPlane: 3, pool: 1 }
    await Promise.all([
      createCluster(context, 'plain', desired),
      createCluster(context, 'classy', { ...larger, controlPlane: 1 }).then(() => scale(context, 'classy', larger)),
    ])
    await applyMetadata(context, initialMetadata)
    await waitForMetadata(context, initialMetadata, 'before')
    await waitUntilSettled(context, 'classy', larger)
    progress("upstream's core has created the Clusters")

    for (const [newCore, switchCore] of [
      ['ours', switchToOurs],
      ['theirs', switchToTheirs],
    ] as const) {
      const machines = await machinesOf(context)
      const fieldsBefore = await fieldsWhenIdle(context, checks, `before ${newCore}`)
      await switchCore('stopped')
      await waitUntilSettled(context, 'classy', larger)
      await waitUntilSettled(context, 'plain', desired)
      const changed = changes(fieldsBefore, await fieldsWhenIdle(context, checks, `after ${newCore}`))
      checks.check(`no field outside of the status changes its value or its manager: ${newCore}`, changed.length === 0, changed)
      // The new core changes and removes fields that the previous core has applied.
      const newMetadata: Metadata = { labels: { keep: newCore }, taint: false }
      await applyMetadata(context, newMetadata)
      await waitForMetadata(context, newMetadata, newCore)
      await waitUntilSettled(context, 'classy', larger)
      await waitUntilSettled(context, 'plain', desired)
      const replacedMachines = replaced(machines, await machinesOf(context))
      checks.check(`no Machine is replaced: ${newCore}`, replacedMachines.length === 0, replacedMachines)
      progress(`labels and taints changed and removed by ${newCore}`)
      await scale(context, 'classy', { ...larger, workers: 3 })
      await removeReplicas(context)
      // The webhook for MachineDeployments sets one replica if neither the topology nor the annotations for an autoscaler set the number.
      await waitUntilSettled(context, 'classy', { ...larger, workers: 1 })
      await applyMetadata(context, { labels: { keep: newCore, go: newCore }, taint: true })
      await waitForMetadata(context, { labels: { keep: newCore, go: newCore }, taint: true }, newCore)
      await waitUntilSettled(context, 'classy', larger)
      progress(`replicas changed and removed by ${newCore}`)
    }

    // The last two takeovers occur during a rollout of `classy` and the deletion of `plain`.
    for (const [newCore, switchCore, nextVersion] of [
      ['ours', switchToOurs, 'v1.34.0'],
      ['theirs', switchToTheirs, 'v1.35.0'],
    ] as const) {
      const body = { spec: { topology: { version: nextVersion } } }
      await client.patch(Cluster, { namespace, name: 'classy' }, { type: 'merge', body })
      await delayDeletions(context)
      await client.delete(Cluster, { namespace, name: 'plain' })
      const machinesDuringRollout = await waitFor(context, Machine, `a Machine of ${nextVersion}`, (all) =>
        all.some(({ spec }) => spec.version === nextVersion),
      )
      const rolling = machinesDuringRollout.filter(({ spec }) => spec.clusterName === 'classy')
      checks.check(`a rollout is in progress: ${newCore}`, new Set(rolling.map(({ spec }) => spec.version)).size === 2)
      await switchCore('killed')
      const names = (await client.list(Cluster, { namespace })).items.map(({ metadata }) => metadata.name)
      checks.check(`a deletion is in progress: ${newCore}`, names.includes('plain'), names)
      await waitUntilSettled(context, 'classy', { ...larger, version: nextVersion })
      const machines = (await machinesOf(context)).map(identity)
      const lostMachines = rolling.filter(
        (machine) => machine.spec.version === nextVersion && !machines.includes(identity(machine)),
      )
      checks.check(`no Machine of the new version is replaced: ${newCore}`, lostMachines.length === 0, lostMachines.map(identity))
      await waitFor(
        context,
        Cluster,
        `plain is deleted: ${newCore}`,
        (all) => !all.some((cluster) => cluster.metadata.name === 'plain'),
      )
      await waitForDeletion(context)
      checks.check(`the rollout and the deletion in progress are completed: ${newCore}`, true)
      progress(`rollout and deletion completed by ${newCore}`)
      if (newCore === 'ours') await createCluster(context, 'plain', desired)
    }
    await remove(context, 'classy')
    const undeleted = await undeletedObjects(context, before)
    checks.check('all objects are deleted', undeleted.length === 0, undeleted)
  } catch (err) {
    for (const program of running.theirs?.programs ?? []) console.log(`--- ${program.name}\n${program.tail(12)}`)
    throw new Error(messageOf(err), { cause: err })
  } finally {
    await running.core?.kill()
    await running.local?.kill()
    await running.theirs?.[Symbol.asyncDispose]()
  }
}

/** Labels and taint that the suite sets. */
interface Metadata {
  readonly labels: { readonly [label: string]: string }
  readonly taint: boolean
}
const initialMetadata: Metadata = { labels: { keep: 'before', go: 'before' }, taint: true }

const taints = [{ key: 'interop', value: 'yes', effect: 'NoSchedule', propagation: 'Always' }]

/**
 * Sets the given labels, and removes the labels `keep` and `go` if they are not given: for the MachineDeployments of both Clusters, and for
 * the control plane of `classy`. Sets or removes the taint of the MachineDeployments. Also sets two replicas for the MachineDeployment of
 * `classy`, because the patch replaces its whole entry in the topology.
 */
async function applyMetadata({ client, namespace }: LifeContext, { labels, taint }: Metadata): Promise<void> {
  const changed = { keep: null, go: null, ...labels }
  const deployment = { class: 'worker', name: 'md', replicas: 2, metadata: { labels }, ...(taint ? { taints } : {}) }
  const topology = { controlPlane: { metadata: { labels: changed } }, workers: { machineDeployments: [deployment] } }
  await client.patch(Cluster, { namespace, name: 'classy' }, { type: 'merge', body: { spec: { topology } } })
  const template = { metadata: { labels: changed }, spec: { taints: taint ? taints : null } }
  await client.patch(MachineDeployment, { namespace, name: 'plain' }, { type: 'merge', body: { spec: { template } } })
}

/**
 * Waits until the existing objects have the metadata. Of the labels `keep` and `go`, MachineSets, Machines, LocalMachines and
 * LocalBootstrapConfigs must have the given ones, and no other; objects of MachinePools and of the control plane of `plain` are not checked.
 * Machines of MachineDeployments must have the taint if `taint` is true, and otherwise must not have it.
 */
async function waitForMetadata(context: LifeContext, { labels, taint }: Metadata, step: string): Promise<void> {
  const isPlainControlPlane = ({ metadata }: KubeObject) =>
    metadata.labels?.['cluster.x-k8s.io/control-plane'] !== undefined &&
    metadata.labels['cluster.x-k8s.io/cluster-name'] === 'plain'
  const isOfPool = ({ metadata }: KubeObject) => metadata.labels?.['cluster.x-k8s.io/pool-name'] !== undefined
  for (const kind of [MachineSet, Machine, LocalMachine, LocalBootstrapConfig] as readonly Kind[])
    await waitFor(context, kind, `${step}: labels of ${kind.kind}s`, (all) =>
      all
        .filter((object) => !isPlainControlPlane(object) && !isOfPool(object) && !isPoolBootstrap(object))
        .every((object) => hasExactly(labels, object)),
    )
  await waitFor(context, Machine, `${step}: taints of Machines`, (all) =>
    all
      .filter(({ metadata }) => metadata.labels?.['cluster.x-k8s.io/deployment-name'] !== undefined)
      .every(({ spec }) => (spec.taints ?? []).some(({ key }) => key === 'interop') === taint),
  )
}

/** Whether the object is the bootstrap config of a MachinePool. Such a config belongs to no Machine. */
const isPoolBootstrap = ({ metadata }: KubeObject) =>
  metadata.ownerReferences?.some(({ kind }) => kind === 'MachinePool') ?? false

/** Removes the field `replicas` of the workers from the topology of `classy`. */
const removeReplicas = ({ client, namespace }: LifeContext) =>
  client.patch(
    Cluster,
    { namespace, name: 'classy' },
    { type: 'json', operations: [{ op: 'remove', path: '/spec/topology/workers/machineDeployments/0/replicas' }] },
  )

/** Makes the deletion of `plain` take longer than a takeover. */
async function delayDeletions({ client, namespace }: LifeContext): Promise<void> {
  const body = { spec: { simulated: { deletionDelay: '20s' } } }
  for (const { metadata } of (await client.list(LocalMachine, { namespace })).items)
    if (metadata.labels?.['cluster.x-k8s.io/cluster-name'] === 'plain')
      await client.patch(LocalMachine, { namespace, name: metadata.name }, { type: 'merge', body })
}

/** Waits until the Machines of `plain`, their MachineSets and their provider objects are deleted, some of them by the garbage collector. */
async function waitForDeletion({ client, namespace, ...context }: LifeContext): Promise<void> {
  for (const kind of [Machine, MachineSet, LocalMachine, LocalBootstrapConfig] as readonly Kind[])
    await waitFor({ client, namespace, ...context }, kind, `every ${kind.kind} of plain is deleted`, (all) =>
      all.every(({ metadata }) => metadata.labels?.['cluster.x-k8s.io/cluster-name'] !== 'plain'),
    )
}

/**
 * Waits at most a minute until no object of Cluster API's and Capstan's kinds, and no Secret, has been written for `QuietMilliseconds`.
 * Records in `checks` whether that was the case.
 *
 * @returns the fields and field managers by object
 */
async function fieldsWhenIdle(context: LifeContext, checks: Checks, when: string): Promise<Map<string, ComparedFields>> {
  const revisions = async () =>
    new Map([...(await clusterApiObjects(context))].map(([name, { metadata }]) => [name, metadata.resourceVersion!]))
  let [last, since] = [await revisions(), performance.now()]
  const end = performance.now() + 60_000
  let written: readonly string[] = []
  while (performance.now() - since < QuietMilliseconds && performance.now() < end) {
    await new Promise((resolve) => void setTimeout(resolve, 1000))
    const current = await revisions()
    written = [...current].filter(([name, revision]) => last.get(name) !== revision).map(([name]) => name)
    if (written.length > 0 || current.size !== last.size) [last, since] = [current, performance.now()]
  }
  checks.check(`idle controllers write nothing: ${when}`, performance.now() - since >= QuietMilliseconds, written)
  return new Map([...(await clusterApiObjects(context))].map(([name, object]) => [name, comparedFields(object)]))
}

/** Milliseconds without a write after which controllers count as idle. */
const QuietMilliseconds = 6000

const machinesOf = async ({ client, namespace }: LifeContext): Promise<Machine[]> =>
  (await client.list(Machine, { namespace })).items

async function webhookConfigurationNames(client: Client): Promise<string[]> {
  const { items: mutating } = await client.list(MutatingWebhookConfiguration)
  const { items: validating } = await client.list(ValidatingWebhookConfiguration)
  return [...mutating, ...validating].map(({ metadata: { name } }) => name)
}
