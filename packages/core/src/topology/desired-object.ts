/** The objects of a topology one by one: how they are copied from templates, what they are called, whom they belong to. Pure. */
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
  controllerReference,
  draft,
  type Input,
  keyOf,
  type KubeObject,
  type OwnerReference,
  ownerReference,
  sameOwner,
  typeMeta,
  type UnknownObject,
} from '@capstan/kube'
import type { ExternalKind } from '../external/contract-version.ts'
import type { External } from '../external/get.ts'
import { nameFromTemplate, simpleName } from '../naming/generated-name.ts'
import { stableRandom } from './stable-random.ts'

/** A provider's object as it should be. Patches still change it in place. */
export interface DesiredObject extends ExternalKind {
  readonly object: NamedInput
}

/** An object to apply: its name is known. */
export type NamedInput = Input<UnknownObject> & { metadata: { name: string; namespace: string } }

/** How the owner of a desired object refers to it. */
export const refToDesired = ({ kind: { group, kind }, object }: DesiredObject): ContractVersionedObjectReference => ({
  apiGroup: group,
  kind,
  name: object.metadata.name,
})

/** The object that a template is for. */
export function clone(template: External, cluster: Cluster, name: string, existing: KubeObject | undefined): DesiredObject {
  const object = fromTemplate(template.object, {
    name,
    namespace: cluster.metadata.namespace!,
    clusterName: cluster.metadata.name,
    labels: ownedLabels(cluster),
    owner: ownerBy(cluster, existing, controllerReference(cluster, Cluster)),
  })
  return { contract: template.contract, kind: clonedKind(template.kind), object: object as NamedInput }
}

/** A template of the Cluster's own, as a copy of the class' one. */
export function copyTemplate(
  { object, kind, contract }: External,
  cluster: Cluster,
  name: string,
  labels: Record<string, string>,
  existing: KubeObject | undefined,
): DesiredObject {
  const { metadata, apiVersion: _v, kind: _k, status: _s, ...rest } = draft(object)
  const { [LastApplied]: _, ...annotations } = metadata.annotations ?? {}
  const copy = {
    ...rest,
    ...typeMeta(kind),
    metadata: {
      name,
      namespace: cluster.metadata.namespace!,
      labels: { ...metadata.labels, ...ownedLabels(cluster), ...labels },
      annotations: { ...annotations, ...clonedFrom({ object, kind, contract }) },
      ownerReferences: [ownerBy(cluster, existing, ownerReference(cluster, Cluster))],
    },
  }
  return { contract, kind, object: copy as NamedInput }
}

const LastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Labels that no patch and no user changes. */
export const ownedLabels = (cluster: Cluster): Record<string, string> => ({
  [ClusterNameLabel]: cluster.metadata.name,
  [ClusterTopologyOwnedLabel]: '',
})

/** Annotations that say what was copied. */
export const clonedFrom = ({ object, kind }: External): Record<string, string> => ({
  [TemplateClonedFromNameAnnotation]: keyOf(object).name,
  [TemplateClonedFromGroupKindAnnotation]: kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`,
})

/**
 * The Cluster as owner: as the object already has it, so that this and other controllers do not correct one another, or
 * `fresh`. Owned from its first moment, an object goes with its Cluster even if the Cluster never came to know it.
 */
export const ownerBy = (cluster: Cluster, existing: KubeObject | undefined, fresh: OwnerReference): OwnerReference => {
  const own = existing?.metadata.ownerReferences?.find((reference) => sameOwner(reference, fresh))
  return own?.uid === cluster.metadata.uid ? { ...own } : fresh
}

/** A name as a naming template gives it; the template knows the topology's name for workers. */
export function generatedName(cluster: Cluster, template: string, ...purpose: readonly string[]): string {
  const [part, topologyName] = purpose
  const data = {
    cluster: { name: cluster.metadata.name },
    ...(part === 'machineDeployments' && topologyName ? { machineDeployment: { topologyName } } : {}),
  }
  return nameFromTemplate(template, data, stableRandom(cluster.metadata.uid, ...purpose))
}

/** `<base>-<random 5>`. What else the purpose names, such as the predecessor and content, makes the name of a later one. */
export const templateName = (cluster: Cluster, base: string, ...purpose: readonly string[]): string =>
  simpleName(`${base}-`, stableRandom(cluster.metadata.uid, ...purpose))
