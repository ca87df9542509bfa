/**
 * An IPAM provider: a kind of address pools, a controller that allocates addresses for claims, as Cluster API's contract for IPAM providers
 * requires, and a controller that sets the Ready condition of the pools.
 */
import { Cluster, ClusterNameLabel, hasPausedAnnotation, IPAddress, IPAddressClaim, isPaused } from '@capstan/api'
import {
  type Cache,
  controller,
  type Index,
  type Outcome,
  proceed,
  type ReconcileContext,
  wait,
  watches,
} from '@capstan/controller'
import {
  conditionTypes,
  defineKind,
  type DeclaredKind,
  type Input,
  isDeleting,
  keyOf,
  type ObjectKey,
  type ObjectOf,
  orAbsent,
  s,
  setConditions,
  typeMeta,
} from '@capstan/kube'
import type { ProviderEnvOptions } from './provider-env.ts'

export const DevPool = defineKind({
  group: 'ipam.example.com',
  version: 'v1alpha1',
  kind: 'DevPool',
  plural: 'devpools',
  scope: 'Namespaced',
  doc: 'DevPool is a list of addresses.',
  spec: s.object({ addresses: s.list(s.string()).listSet(), prefix: s.int32(), gateway: s.string().optional() }),
  status: s.object({ conditions: s.conditions() }),
})
type DevPool = ObjectOf<typeof DevPool>

const ReleaseFinalizer = 'ipam.example.com/release'
const ProtectFinalizer = 'ipam.cluster.x-k8s.io/protect-address'
const { Ready } = conditionTypes({ Ready: ['Ready'] })

/** Returns the provider as options of `providerEnv`. */
export const poolProvider = (): Pick<ProviderEnvOptions, 'kinds' | 'start'> => ({
  kinds: [DevPool as unknown as DeclaredKind],
  start: () => ({ controllers: [claimController, poolController], close: async () => {} }),
})

const clusterNameOf = ({ metadata, spec }: IPAddressClaim): string | undefined =>
  spec.clusterName ?? metadata.labels?.[ClusterNameLabel]

const byCluster: Index<IPAddressClaim> = {
  name: 'claims by cluster',
  kind: IPAddressClaim,
  values: (claim) => [`${claim.metadata.namespace}/${clusterNameOf(claim)}`],
}

const claimsOf = ({ metadata }: Cluster, cache: Cache): ObjectKey[] =>
  cache.byIndex(byCluster, `${metadata.namespace}/${metadata.name}`).map(keyOf)

const byPool: Index<IPAddressClaim> = {
  name: 'claims by pool',
  kind: IPAddressClaim,
  values: ({ metadata, spec }) => (isOfDevPool(spec) ? [`${metadata.namespace}/${spec.poolRef.name}`] : []),
}

const claimsOfPool = (namespace: string | undefined, name: string, cache: Cache): ObjectKey[] =>
  cache.byIndex(byPool, `${namespace}/${name}`).map(keyOf)

const isOfDevPool = ({ poolRef }: Pick<IPAddressClaim['spec'], 'poolRef'>): boolean =>
  poolRef.apiGroup === DevPool.group && poolRef.kind === DevPool.kind

const claimController = controller({
  name: 'devpool-claims',
  for: IPAddressClaim,
  watches: [
    watches(Cluster, claimsOf),
    watches(DevPool, ({ metadata }, cache) => claimsOfPool(metadata.namespace, metadata.name, cache)),
    // A released address may be the one for which another claim of the pool waits.
    watches(IPAddress, ({ metadata, spec }, cache) =>
      isOfDevPool(spec) ? claimsOfPool(metadata.namespace, spec.poolRef.name, cache) : [],
    ),
  ],
  // Two concurrent reconciles could allocate the same address.
  concurrency: 1,
  reconcile,
})

async function reconcile(key: ObjectKey, io: ReconcileContext): Promise<Outcome> {
  const { cache, client, signal } = io
  const claim = cache.peek(IPAddressClaim, key)
  if (!claim || !isOfDevPool(claim.spec)) return proceed()
  const clusterName = clusterNameOf(claim)
  const cluster = clusterName === undefined ? undefined : cache.peek(Cluster, { ...key, name: clusterName })
  if (clusterName !== undefined && !cluster) return wait(`Cluster ${clusterName}`)
  const isClusterPaused = cluster !== undefined && isPaused(cluster, cluster)
  if (isClusterPaused || hasPausedAnnotation(claim)) return wait('the end of the pause')
  if (isDeleting(claim)) return release(claim, io)

  const pool = cache.peek(DevPool, { ...key, name: claim.spec.poolRef.name })
  if (!pool) return wait(`DevPool ${claim.spec.poolRef.name}`)
  if (!claim.metadata.finalizers?.includes(ReleaseFinalizer)) {
    const finalizers = [...(claim.metadata.finalizers ?? []), ReleaseFinalizer]
    await client.patch(IPAddressClaim, key, { type: 'merge', body: { metadata: { finalizers } } }, { signal })
  }
  if (!(await orAbsent(client.get(IPAddress, key, { signal })))) {
    const address = await freeAddress(pool, io)
    if (address === undefined) return wait(`an address of DevPool ${pool.metadata.name}`)
    await client.create(IPAddress, newAddress(claim, pool, address), { signal })
  }
  if (claim.status?.addressRef?.name !== key.name) {
    const body = { status: { addressRef: { name: key.name } } }
    await client.patch(IPAddressClaim, key, { type: 'merge', body }, { subresource: 'status', signal })
  }
  return proceed()
}

async function freeAddress({ metadata, spec }: DevPool, { client, signal }: ReconcileContext): Promise<string | undefined> {
  const { items } = await client.list(IPAddress, { namespace: metadata.namespace!, signal })
  const used = new Set(items.map((item) => item.spec.address))
  return spec.addresses.find((address) => !used.has(address))
}

const newAddress = (claim: IPAddressClaim, pool: DevPool, address: string): Input<IPAddress> => ({
  metadata: {
    name: claim.metadata.name,
    namespace: claim.metadata.namespace!,
    finalizers: [ProtectFinalizer],
    ownerReferences: [
      {
        ...typeMeta(IPAddressClaim),
        name: claim.metadata.name,
        uid: claim.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
      { ...typeMeta(DevPool), name: pool.metadata.name, uid: pool.metadata.uid, controller: false, blockOwnerDeletion: true },
    ],
  },
  spec: {
    address,
    prefix: pool.spec.prefix,
    ...(pool.spec.gateway === undefined ? {} : { gateway: pool.spec.gateway }),
    claimRef: { name: claim.metadata.name },
    poolRef: claim.spec.poolRef,
  },
})

async function release(claim: IPAddressClaim, { client, signal }: ReconcileContext): Promise<Outcome> {
  const key = keyOf(claim)
  await orAbsent(client.delete(IPAddress, key, { signal }))
  await orAbsent(client.patch(IPAddress, key, { type: 'merge', body: { metadata: { finalizers: null } } }, { signal }))
  const finalizers = (claim.metadata.finalizers ?? []).filter((name) => name !== ReleaseFinalizer)
  await orAbsent(client.patch(IPAddressClaim, key, { type: 'merge', body: { metadata: { finalizers } } }, { signal }))
  return proceed()
}

const poolController = controller({
  name: 'devpool',
  for: DevPool,
  async reconcile(key, { cache, client, clock, signal }) {
    const pool = cache.peek(DevPool, key)
    if (!pool || isDeleting(pool) || pool.status?.conditions) return proceed()
    const options = { now: clock.now(), generation: pool.metadata.generation, order: ['Ready'] }
    const body = { status: { conditions: setConditions(undefined, [Ready.true('Ready')], options) } }
    await client.patch(DevPool, key, { type: 'merge', body }, { subresource: 'status', signal })
    return proceed()
  },
})
