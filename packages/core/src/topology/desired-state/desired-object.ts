/** Makes individual objects of a topology from templates: content, name and owner. Pure. */
import type { ContractVersionedObjectReference } from '@capstan/api'
import {
  Cluster,
  ClusterNameLabel,
  ClusterTopologyOwnedLabel,
  clonedKind,
  fromTemplate,
  TemplateClonedFromGroupKindAnnotation,
  TemplateClonedFromNameAnnotation,
} from '@capstan/api'
import {
  draft,
  type Input,
  isControlledBy,
  keyOf,
  type KubeObject,
  type OwnerReference,
  ownerReference,
  sameOwner,
  typeMeta,
  type UnknownObject,
} from '@capstan/kube'
import type { ExternalKind } from '../../external/contract-version.ts'
import type { External } from '../../external/get.ts'
import { nameFromTemplate, simpleName } from '../../naming/generated-name.ts'
import { stableRandom } from '../stable-random.ts'

/** A desired object of a provider. Patches of the class later change it in place. */
export interface DesiredObject extends ExternalKind {
  readonly object: NamedInput
}

/** An object to apply, with name and namespace. */
export type NamedInput = Input<UnknownObject> & { metadata: { name: string; namespace: string } }

/** Returns a reference to a desired object, for the object that refers to it. */
export const refToDesired = ({ kind: { group, kind }, object }: DesiredObject): ContractVersionedObjectReference => ({
  apiGroup: group,
  kind,
  name: object.metadata.name,
})

interface CloneOptions {
  /** Labels in addition to `ownedLabels`. */
  readonly labels?: Record<string, string>
  /** The owner to apply. By default the Cluster, or none if the existing object has a controller reference to the Cluster. */
  readonly owner?: OwnerReference
}

/** Makes an object from its template. */
export function clone(
  template: External,
  cluster: Cluster,
  name: string,
  existing: KubeObject | undefined,
  { labels = {}, owner }: CloneOptions = {},
): DesiredObject {
  const isControlled = existing !== undefined && isControlledBy(existing, cluster, Cluster)
  const newOwner = owner ?? (isControlled ? undefined : ownerReference(cluster, Cluster))
  const object = fromTemplate(template.object, {
    name,
    namespace: cluster.metadata.namespace!,
    clusterName: cluster.metadata.name,
    labels: { ...ownedLabels(cluster), ...labels },
    ...(newOwner ? { owner: existingOwnerOr(cluster, existing, newOwner) } : {}),
  })
  return { contract: template.contract, kind: clonedKind(template.kind), object: object as NamedInput }
}

/** Copies a template of the class for the Cluster. */
export function copyTemplate(
  { object, kind, contract }: External,
  cluster: Cluster,
  name: string,
  labels: Record<string, string>,
  existing: KubeObject | undefined,
): DesiredObject {
  const { metadata, apiVersion: _v, kind: _k, status: _s, ...otherFields } = draft(object)
  const { [LastApplied]: _, ...annotations } = metadata.annotations ?? {}
  const copy = {
    ...otherFields,
    ...typeMeta(kind),
    metadata: {
      name,
      namespace: cluster.metadata.namespace!,
      labels: { ...metadata.labels, ...ownedLabels(cluster), ...labels },
      annotations: { ...annotations, ...clonedFrom({ object, kind, contract }) },
      ownerReferences: [existingOwnerOr(cluster, existing, ownerReference(cluster, Cluster))],
    },
  }
  return { contract, kind, object: copy as NamedInput }
}

const LastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Labels that mark an object as part of the topology of the Cluster. They take precedence over labels of templates and of users. */
export const ownedLabels = (cluster: Cluster): Record<string, string> => ({
  [ClusterNameLabel]: cluster.metadata.name,
  [ClusterTopologyOwnedLabel]: '',
})

/** Annotations that record the source template. */
export const clonedFrom = ({ object, kind }: External): Record<string, string> => ({
  [TemplateClonedFromNameAnnotation]: keyOf(object).name,
  [TemplateClonedFromGroupKindAnnotation]: kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`,
})

/**
 * Returns the existing owner reference to the Cluster, which other controllers may have changed; `newOwner` when there is none.
 * An owner is set at the creation of the object, so that the object is deleted with the Cluster even if the Cluster never referred to it.
 */
export const existingOwnerOr = (cluster: Cluster, existing: KubeObject | undefined, newOwner: OwnerReference): OwnerReference => {
  const existingOwner = existing?.metadata.ownerReferences?.find((reference) => sameOwner(reference, newOwner))
  return existingOwner?.uid === cluster.metadata.uid ? { ...existingOwner } : newOwner
}

/**
 * Returns a name from a naming template. Naming templates of workers can use the name of the MachineDeployment or MachinePool in the
 * topology. `.random` is computed from the uid of the Cluster and the purpose, such as `machineDeployments` and `md-0`.
 */
export function generatedName(cluster: Cluster, template: string, ...purpose: readonly string[]): string {
  const [part, topologyName] = purpose
  const data = {
    cluster: { name: cluster.metadata.name },
    ...(part === 'machineDeployments' && topologyName ? { machineDeployment: { topologyName } } : {}),
    ...(part === 'machinePools' && topologyName ? { machinePool: { topologyName } } : {}),
  }
  return nameFromTemplate(template, data, stableRandom(cluster.metadata.uid, ...purpose))
}

/**
 * Returns `base-`, truncated to 58 characters, and five characters that are computed from the uid of the Cluster and the purpose. Further
 * parts of the purpose, such as the name of the replaced template and the new spec, distinguish later templates.
 */
export const templateName = (cluster: Cluster, base: string, ...purpose: readonly string[]): string =>
  simpleName(`${base}-`, stableRandom(cluster.metadata.uid, ...purpose))
