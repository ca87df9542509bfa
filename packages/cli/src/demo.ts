/** The demo Cluster of `capstan up --demo` and `capstan dev`: its ClusterClass, its templates, and commands to try. */
import type { Client, Condition, DeclaredKind, Input, Kind, KubeObject, ObjectKey } from '@capstan/kube'
import { Cluster, ClusterClass, coreKinds } from '@capstan/api'
import { isTrue, orAbsent } from '@capstan/kube'
import { type LocalControlPlaneTemplate, localKinds } from '@capstan/local'
import { demoFolder } from '@capstan/lab'
import { parseAllDocuments } from 'yaml'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { untilObject } from './until-object.ts'

const applyOptions = { fieldManager: 'capstan-up', force: true }

/** Key of the demo Cluster. */
export const DemoCluster = { namespace: 'default', name: 'demo' } as const
const DemoClass = { namespace: 'default', name: 'demo' } as const

const kinds: ReadonlyMap<string, DeclaredKind> = new Map([...coreKinds, ...localKinds].map((kind) => [kind.kind, kind]))

/** Changes to the demo objects that are needed for core to call an extension's hooks. */
export interface DemoChanges {
  /** Patches to add to the ClusterClass. */
  readonly patches: NonNullable<ClusterClass['spec']['patches']>
  /** Value for `spec.upgrade` of the ClusterClass; absent: the field is unchanged. */
  readonly upgrade?: NonNullable<ClusterClass['spec']['upgrade']>
  /** Whether maxSurge is 0, so that no Machine is created before another one is deleted or updated in place. */
  readonly noSurge: { readonly workers: boolean; readonly controlPlane: boolean }
  /**
   * Handlers that core does not call, because the ClusterClass does not name them. `patches` has one patch for each handler of
   * GeneratePatches, and a patch names at most one handler each of ValidateTopology and DiscoverVariables. `upgrade` names one handler.
   */
  readonly uncalled: readonly string[]
}

const noChanges: DemoChanges = { patches: [], noSurge: { workers: false, controlPlane: false }, uncalled: [] }

/**
 * Creates the ClusterClass with its templates if the ClusterClass is missing, waits until it is reconciled, and creates the Cluster if it
 * is missing. Does not change an existing ClusterClass or Cluster.
 */
export async function bringUpDemo(client: Client, signal: AbortSignal, changes = noChanges): Promise<void> {
  if (!(await orAbsent(client.get(ClusterClass, DemoClass)))) {
    await applyFile(client, 'class.yaml', (object) => {
      if (object.kind === 'ClusterClass') return changedClass(object, changes)
      if (object.kind !== 'LocalControlPlaneTemplate' || !changes.noSurge.controlPlane) return object
      const { spec } = object as unknown as LocalControlPlaneTemplate
      spec.template.spec.rollout = { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } } }
      return object
    })
  }
  await untilClassReconciled(client, signal)
  if (await orAbsent(client.get(Cluster, DemoCluster))) return
  await applyFile(client, 'cluster.yaml', (object) => {
    // A control plane needs at least 3 replicas for a rollout without surge.
    if (changes.noSurge.controlPlane) (object as unknown as Cluster).spec.topology!.controlPlane!.replicas = 3
    return object
  })
}

/**
 * Applies the demo ClusterClass with these changes, and removes earlier changes. Does not apply the templates, which are immutable, and so
 * ignores `noSurge.controlPlane`.
 */
export const applyDemoClass = (client: Client, changes: DemoChanges): Promise<void> =>
  applyFile(client, 'class.yaml', (object) => (object.kind === 'ClusterClass' ? changedClass(object, changes) : undefined))

function changedClass(object: Manifest, { patches, upgrade, noSurge }: DemoChanges): Manifest {
  const { spec } = object as unknown as ClusterClass
  spec.patches = [...(spec.patches ?? []), ...patches]
  if (upgrade) spec.upgrade = upgrade
  const strategy = { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } }
  if (noSurge.workers) for (const workers of spec.workers?.machineDeployments ?? []) workers.rollout = { strategy }
  return object
}

/** Waits until the ClusterClass is reconciled, so that the output has no lines about a Cluster that waits for its class. */
const untilClassReconciled = (client: Client, signal: AbortSignal): Promise<void> =>
  untilTrue(client, ClusterClass, DemoClass, 'VariablesReady', signal)

/** Resolves when a condition of an object is True. */
export const untilTrue = (
  client: Client,
  kind: Kind<KubeObject & { status?: { conditions?: Condition[] } }>,
  key: ObjectKey,
  condition: string,
  signal: AbortSignal,
): Promise<void> => untilObject(client, kind, key, (object) => isTrue(object, condition), signal)

type Manifest = Input<KubeObject> & { kind: string }

async function applyFile(client: Client, name: string, change: (object: Manifest) => Manifest | undefined): Promise<void> {
  const text = await readFile(new URL(name, demoFolder), 'utf8')
  for (const document of parseAllDocuments(text)) {
    const object = change(document.toJS() as Manifest)
    if (!object) continue
    const kind = kinds.get(object.kind)
    if (!kind) throw new Error(`Cannot apply ${name}: kind ${object.kind} is not known`)
    await client.apply(kind, object, applyOptions)
  }
}

/** A command for users, with its purpose. */
export interface Suggestion {
  readonly command: string
  readonly purpose: string
}

/** Returns the absolute path of a demo manifest, so that the printed commands work from any folder. */
const manifestPath = (name: string): string => fileURLToPath(new URL(name, demoFolder))

/** Returns commands for the user to try in a management cluster without the demo cluster: they create, show and delete it. */
export function firstSuggestions(kubeconfig: string): readonly Suggestion[] {
  const kubectl = `kubectl --kubeconfig ${kubeconfig}`
  return [
    { command: `${kubectl} api-resources --categories cluster-api`, purpose: 'list the kinds of Cluster API' },
    { command: `${kubectl} apply -f ${manifestPath('class.yaml')}`, purpose: 'create a ClusterClass and its templates' },
    { command: `${kubectl} apply -f ${manifestPath('cluster.yaml')}`, purpose: 'create a Cluster of that class' },
    { command: `${kubectl} wait --for=condition=Available cluster/demo --timeout=60s`, purpose: 'wait until it is Available' },
    { command: `${kubectl} get clusters,machinedeployments,machinepools,machines`, purpose: 'list the objects of the Cluster' },
    { command: `${kubectl} delete cluster demo`, purpose: 'delete the Cluster' },
  ]
}

/** Returns commands for the user to try with the demo cluster. `capstan` is the command that starts this program. */
export function suggestions(kubeconfig: string, capstan: string): readonly Suggestion[] {
  const kubectl = `kubectl --kubeconfig ${kubeconfig}`
  return [
    { command: `${kubectl} get clusters,machinedeployments,machinepools,machines`, purpose: 'list the objects of the Cluster' },
    { command: `${kubectl} describe cluster demo`, purpose: 'show its conditions' },
    { command: `${kubectl} get machines -w`, purpose: 'watch its Machines (Ctrl-C stops the watch)' },
    { command: `${kubectl} wait --for=condition=Available cluster/demo --timeout=60s`, purpose: 'wait until it is Available' },
    {
      command: `${capstan} kubeconfig demo --kubeconfig ${kubeconfig} > demo.kubeconfig && kubectl --kubeconfig demo.kubeconfig get nodes`,
      purpose: 'list the Nodes of the workload cluster',
    },
    {
      command: `${kubectl} scale machinedeployment demo-elastic --replicas=3`,
      purpose: 'scale workers whose replicas the topology does not set',
    },
    {
      command: `${kubectl} patch cluster demo --type=json -p '[{"op":"replace","path":"/spec/topology/workers/machineDeployments/0/replicas","value":2}]'`,
      purpose: 'scale workers whose replicas the topology sets',
    },
    {
      command: `${kubectl} patch cluster demo --type=merge -p '{"spec":{"topology":{"version":"v1.36.1"}}}'`,
      purpose: 'upgrade: control plane first, then workers, hooks in between',
    },
    {
      command: `${kubectl} apply -f ${manifestPath('second-cluster.yaml')}`,
      purpose: 'create a second Cluster of the same class',
    },
    { command: `${kubectl} delete cluster demo`, purpose: 'delete the first Cluster with its Machines' },
  ]
}
