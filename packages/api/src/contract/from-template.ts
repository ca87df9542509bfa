import {
  type Input,
  isRecord,
  draft,
  type Kind,
  type OwnerReference,
  type UnknownObject,
  unknownKind,
  parseApiVersion,
} from '@capstan/kube'
import { pluralOf } from './plural.ts'

export interface FromTemplateOptions {
  readonly name: string
  readonly namespace: string
  readonly clusterName: string
  /** Labels in addition to those of the template; they replace labels of the template with the same key. */
  readonly labels?: Readonly<Record<string, string>>
  /** Annotations in addition to those of the template; they replace annotations of the template with the same key. */
  readonly annotations?: Readonly<Record<string, string>>
  /** The only owner of the clone; owners in the template are ignored. */
  readonly owner?: OwnerReference
}

/**
 * Returns the object to create from a provider's template: the template's `spec.template` with the metadata of `options`, the label
 * for the name of the Cluster, and annotations that name the template. Of the metadata in `spec.template`, only labels and annotations are
 * kept. An apiVersion or kind that `spec.template` lacks is derived from the template. Pure. Upstream: controllers/external/util.go.
 */
export function fromTemplate(template: UnknownObject, options: FromTemplateOptions): Input<UnknownObject> {
  const spec = template['spec']
  const body = draft(isRecord(spec) && isRecord(spec['template']) ? spec['template'] : {}) as Partial<UnknownObject>
  const { labels, annotations } = (body.metadata ?? {}) as {
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
  const { group } = parseApiVersion(template.apiVersion)
  return {
    ...body,
    apiVersion: body.apiVersion ?? template.apiVersion,
    kind: body.kind ?? kindOfClones(template.kind),
    metadata: {
      name: options.name,
      namespace: options.namespace,
      labels: { ...labels, ...options.labels, 'cluster.x-k8s.io/cluster-name': options.clusterName },
      annotations: {
        ...annotations,
        ...options.annotations,
        'cluster.x-k8s.io/cloned-from-name': template.metadata.name,
        'cluster.x-k8s.io/cloned-from-groupkind': group === '' ? template.kind : `${template.kind}.${group}`,
      },
      ...(options.owner ? { ownerReferences: [options.owner] } : {}),
    },
  }
}

/**
 * Returns the kind of the objects made from templates of a kind, unless `spec.template` names another kind: `FooMachine` for
 * `FooMachineTemplate`, in the same group and version.
 */
export function clonedKind(template: Kind<UnknownObject>): Kind<UnknownObject> {
  const kind = kindOfClones(template.kind)
  return unknownKind({ apiVersion: `${template.group}/${template.version}`, kind, plural: pluralOf(kind) })
}

const kindOfClones = (templateKind: string): string => templateKind.replace(/Template$/, '')
