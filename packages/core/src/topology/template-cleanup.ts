/**
 * Adds a finalizer to each MachineDeployment and MachineSet of a topology, and cleans up when it is deleted: deletes the referenced templates
 * that no other MachineDeployment or MachineSet of the Cluster uses, and the MachineHealthCheck of a MachineDeployment. Users that are being
 * deleted do not count. Then removes the finalizer. Upstream: core/reconcilers/topology/machinedeployment and machineset, v1.14.
 */
import {
  Cluster,
  ClusterNameLabel,
  ClusterTopologyOwnedLabel,
  isPaused,
  MachineDeployment,
  MachineDeploymentTopologyFinalizer,
  MachineHealthCheck,
  MachineSet,
  MachineSetTopologyFinalizer,
} from '@capstan/api'
import {
  type Controller,
  controller,
  ensureFinalizer,
  type Outcome,
  patchMetadata,
  proceed,
  type ReconcileContext,
  watches,
} from '@capstan/controller'
import {
  CustomResourceDefinition,
  hasFinalizer,
  isDeleting,
  type Kind,
  keyOf,
  type KubeObject,
  type ObjectKey,
  orAbsent,
} from '@capstan/kube'
import { externalKind } from '../external/contract-version.ts'
import type { ContractRef } from '../external/get.ts'

type TemplateUser = MachineDeployment | MachineSet

/** Creates the controller that, when a MachineDeployment is deleted, deletes its MachineHealthCheck and its templates without other users. */
export const createTopologyMachineDeploymentController = (): Controller =>
  cleanupController('topology/machinedeployment', MachineDeployment, MachineDeploymentTopologyFinalizer)

/** Creates the controller that, when a MachineSet is deleted, deletes its templates without other users. */
export const createTopologyMachineSetController = (): Controller =>
  cleanupController('topology/machineset', MachineSet, MachineSetTopologyFinalizer)

const cleanupController = <T extends TemplateUser>(name: string, kind: Kind<T>, finalizer: string): Controller =>
  controller<T>({
    name,
    for: kind,
    when: ({ object, previous }) => isOfTopology(object ?? previous),
    watches: [
      // When a Cluster is no longer paused, reconciles the MachineDeployments or MachineSets of its topology.
      watches(
        Cluster,
        ({ metadata }, cache) => keysInTopology(metadata, kind, cache),
        ({ previous, object }) => previous?.spec.paused === true && object?.spec.paused !== true,
      ),
    ],
    reconcile: (key, context) => reconcileTemplates(key, kind, finalizer, context),
  })

const isOfTopology = (object: KubeObject | undefined): boolean =>
  object?.metadata.labels?.[ClusterTopologyOwnedLabel] !== undefined

/** Returns the keys of the objects of a kind that belong to the Cluster's topology. */
function keysInTopology(
  { name, namespace }: { name: string; namespace?: string },
  kind: Kind<TemplateUser>,
  cache: ReconcileContext['cache'],
): ObjectKey[] {
  const labelled = cache.byIndex({ name: `clusterName/${kind.kind}`, kind, values: clusterNames }, `${namespace}/${name}`)
  return labelled.filter(isOfTopology).map(keyOf)
}

const clusterNames = ({ metadata }: KubeObject): readonly string[] => {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined ? [] : [`${metadata.namespace}/${name}`]
}

async function reconcileTemplates<T extends TemplateUser>(
  key: ObjectKey,
  kind: Kind<T>,
  finalizer: string,
  context: ReconcileContext,
): Promise<Outcome> {
  const object = context.cache.peek(kind, key)
  // As upstream, the pause annotation of the object prevents both the finalizer and the cleanup; a paused Cluster prevents only the cleanup.
  if (!object || !isOfTopology(object) || isPaused(undefined, object)) return proceed()
  if (!isDeleting(object)) {
    await orAbsent(ensureFinalizer(context, kind, object, finalizer))
    return proceed()
  }
  if (!hasFinalizer(object, finalizer)) return proceed()
  const cluster = context.cache.peek(Cluster, { namespace: key.namespace!, name: object.spec.clusterName })
  if (isPaused(cluster, object)) return proceed()

  const usedTemplates = await templatesInUse(object, context)
  for (const ref of templatesOf(object)) if (!usedTemplates.has(refText(ref))) await deleteTemplate(ref, key.namespace!, context)
  if (kind.kind === MachineDeployment.kind) await deleteHealthCheck(key, context)
  const withoutFinalizer = ({ metadata: { finalizers = [], resourceVersion } }: T) =>
    finalizers.includes(finalizer)
      ? { finalizers: finalizers.filter((existing) => existing !== finalizer), resourceVersion }
      : undefined
  await orAbsent(patchMetadata(context, kind, object, withoutFinalizer))
  return proceed()
}

/** Deletes the MachineHealthCheck with the name of a MachineDeployment, if the topology created it. */
async function deleteHealthCheck(key: ObjectKey, { client, signal }: ReconcileContext): Promise<void> {
  const healthCheck = await orAbsent(client.get(MachineHealthCheck, key, { signal }))
  if (!healthCheck || !isOfTopology(healthCheck)) return
  const { uid } = healthCheck.metadata
  await orAbsent(client.delete(MachineHealthCheck, key, { preconditions: { uid }, signal }))
}

/**
 * Returns the templates, as texts of `refText`, that other MachineDeployments and MachineSets of the Cluster reference. MachineDeployments
 * and MachineSets that are being deleted do not count. Reads them from the API server, not from the cache, because a template deleted by
 * mistake cannot be restored.
 */
async function templatesInUse(object: TemplateUser, { client, signal }: ReconcileContext): Promise<ReadonlySet<string>> {
  const { namespace, uid } = object.metadata
  const options = { namespace: namespace!, labelSelector: `${ClusterNameLabel}=${object.spec.clusterName}`, signal }
  const [deployments, sets] = await Promise.all([client.list(MachineDeployment, options), client.list(MachineSet, options)])
  const otherUsers = [...deployments.items, ...sets.items].filter((user) => user.metadata.uid !== uid && !isDeleting(user))
  return new Set(otherUsers.flatMap((user) => templatesOf(user).map(refText)))
}

function templatesOf({ spec }: TemplateUser): ContractRef[] {
  const { bootstrap, infrastructureRef } = spec.template.spec
  return bootstrap.configRef ? [bootstrap.configRef, infrastructureRef] : [infrastructureRef]
}

const refText = ({ apiGroup, kind, name }: ContractRef): string => `${kind}.${apiGroup}/${name}`

async function deleteTemplate(ref: ContractRef, namespace: string, context: ReconcileContext): Promise<void> {
  // `externalKind` reads CustomResourceDefinitions from the cache, which contains only watched kinds.
  await context.watch(CustomResourceDefinition, () => [])
  const { kind } = await externalKind(context.cache, ref)
  await orAbsent(context.client.delete(kind, { namespace, name: ref.name }, { signal: context.signal }))
}
