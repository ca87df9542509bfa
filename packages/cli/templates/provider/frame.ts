/** Parts that the kinds of this provider share: schemas, and the steps of a reconcile. */
import { Cluster, ClusterNameLabel, ConditionOrder, pausedCondition } from '@capstan/api'
import {
  type Cache,
  type Index,
  type MapFunction,
  type Outcome,
  proceed,
  type ReconcileContext,
  reconcileObject,
  wait,
  whenChanged,
} from '@capstan/controller'
import {
  type Condition,
  conditionTypes,
  isDeleting,
  type Kind,
  type KubeObject,
  keyOf,
  type NewCondition,
  type ObjectKey,
  ownerOfKind,
  removeFinalizer,
  type Schema,
  s,
  setConditions,
} from '@capstan/kube'

/** Labels of the CustomResourceDefinitions: API version v1alpha1 implements contract v1beta2. */
export const labels = { 'cluster.x-k8s.io/provider': 'sample', 'cluster.x-k8s.io/v1beta2': 'v1alpha1' }

/** Finalizer of the objects that this provider reconciles; removed when the infrastructure of the object is deleted. */
export const finalizer = 'sample.example.com/provider'

export const endpoint = () =>
  s.object({ host: s.string({ minLength: 1, maxLength: 512 }), port: s.int32({ minimum: 1, maximum: 65535 }) })

/** Returns the schema of a template's `spec`: metadata and spec of the objects that core creates from the template. */
export const templateOf = <T>(spec: Schema<T>) =>
  s.object({
    template: s.object({
      metadata: s.object({ labels: s.map(s.string()).optional(), annotations: s.map(s.string()).optional() }).optional(),
      spec: spec as Schema<T, false>,
    }),
  })

export const Conditions = conditionTypes({
  /** Core copies this condition of a SampleCluster or SampleMachine to InfrastructureReady of the Cluster or Machine. */
  Ready: ['Ready', 'Waiting', 'Deleting'],
  Paused: ['Paused', 'NotPaused'],
})

type ProviderObject = KubeObject & { status?: { conditions?: Condition[] } }

/** The owner of an object of this provider, such as a Machine, and the Cluster of both. */
export interface Related<Owner> {
  readonly owner: Owner
  readonly cluster: Cluster
}

export interface Reconciler<T extends ProviderObject, Owner extends KubeObject> {
  readonly kind: Kind<T>
  readonly ownerKind: Kind<Owner>
  clusterNameOf(owner: Owner): string
  /** Returns true for an object that this provider never reconciles, not even during its deletion. */
  skip?(object: T): boolean
  /**
   * Creates or updates the infrastructure, and writes the result to spec and status of the object. If a precondition is missing, returns
   * its description, such as `bootstrap data of the Machine`; the next watched change of the owner or the Cluster then leads to another call.
   */
  provision(object: T, related: Related<Owner>, io: ReconcileContext): Promise<string | undefined>
  /** Deletes the infrastructure of the object. */
  remove(object: T, io: ReconcileContext): Promise<void>
}

/**
 * Returns the function that reconciles one object. Without an owner or a Cluster in the cache, it reconciles only a deletion. A paused object
 * gets only the finalizer and the condition Paused.
 */
export const reconcileWith =
  <T extends ProviderObject, Owner extends KubeObject>(reconciler: Reconciler<T, Owner>) =>
  (key: ObjectKey, io: ReconcileContext): Promise<Outcome> =>
    reconcileObject(key, io, {
      kind: reconciler.kind,
      related: (object) => relatedOf(object, reconciler, io.cache),
      skip(object, related) {
        if (reconciler.skip?.(object)) return proceed()
        return related || isDeleting(object) ? undefined : wait(`the ${reconciler.ownerKind.kind} that owns this object`)
      },
      finalizer,
      paused: (object, related) => pausedCondition(related?.cluster, object),
      scope: (object, related) => ({ object, related, ready: undefined as NewCondition | undefined }),
      phases: () => [
        async (scope) => {
          if (isDeleting(scope.object)) {
            await reconciler.remove(scope.object, io)
            removeFinalizer(scope.object, finalizer)
            scope.ready = Conditions.Ready.false('Deleting', 'Deleting')
            return proceed()
          }
          const waitsFor = await reconciler.provision(scope.object, scope.related!, io)
          scope.ready = waitsFor === undefined ? Conditions.Ready.true('Ready') : Conditions.Ready.false('Waiting', waitsFor)
          return waitsFor === undefined ? proceed() : wait(waitsFor)
        },
      ],
      status({ object, related, ready }) {
        const computed = [...(ready ? [ready] : []), pausedCondition(related?.cluster, object)]
        const options = { now: io.clock.now(), generation: object.metadata.generation, order: ConditionOrder }
        object.status = { ...object.status, conditions: setConditions(object.status?.conditions, computed, options) }
        return proceed()
      },
      conditions: Object.keys(Conditions),
      order: ConditionOrder,
      observesGeneration: false,
    })

function relatedOf<T extends ProviderObject, Owner extends KubeObject>(
  object: T,
  { ownerKind, clusterNameOf }: Reconciler<T, Owner>,
  cache: Cache,
): Related<Owner> | undefined {
  const reference = ownerOfKind(object, ownerKind)
  const namespace = object.metadata.namespace!
  const owner = reference && cache.peek(ownerKind, { namespace, name: reference.name })
  const cluster = owner && cache.peek(Cluster, { namespace, name: clusterNameOf(owner) })
  return owner && cluster && { owner, cluster }
}

/** Indexes objects of a kind by their Cluster, as `namespace/name`. */
export const byCluster = <T extends KubeObject>(kind: Kind<T>): Index<T> => ({
  name: `${kind.plural} by cluster`,
  kind,
  values: ({ metadata: { namespace, labels } }) => {
    const name = labels?.[ClusterNameLabel]
    return name === undefined ? [] : [`${namespace}/${name}`]
  },
})

/** Maps a changed Cluster to the objects with its label, which are then reconciled. */
export const ofCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<Cluster> =>
  ({ metadata }, cache) =>
    cache.byIndex(index, `${metadata.namespace}/${metadata.name}`).map(keyOf)

/** Selects changes of the Cluster fields that this provider uses. */
export const clusterMatters = whenChanged(({ spec, status }: Cluster) => [
  spec.paused,
  spec.controlPlaneEndpoint,
  status?.initialization,
])

/** Returns the key of the referenced object, if it is of this kind. */
export const referenced = (
  { metadata }: KubeObject,
  { group, kind }: Kind,
  ref: { apiGroup: string; kind: string; name: string } | undefined,
): ObjectKey[] => (ref?.apiGroup === group && ref.kind === kind ? [{ namespace: metadata.namespace!, name: ref.name }] : [])
