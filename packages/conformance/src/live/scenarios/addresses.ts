/**
 * Scenario with claims of addresses from a pool: claims of several Clusters, paused claims, and deleted claims. Some claims refer to
 * a pool of another group or kind.
 */
import { Cluster, ClusterNameLabel, IPAddress, IPAddressClaim, PausedAnnotation } from '@capstan/api'
import { type Input, keyOf, type KubeObject, orAbsent } from '@capstan/kube'
import type { Bench } from '../bench.ts'
import { refOf } from '../objects.ts'
import { StubControlPlane } from '../stubs.ts'

const cluster = 'running'

/** Claims that the provider must fulfil at once. */
export const normalClaims = ['by-name', 'by-label', 'other']
/** Claims that the provider must not fulfil, by name. The value describes for how long: `while …`. */
export const blockedClaims: Readonly<Record<string, string>> = {
  'cluster-paused': 'while spec.paused of its Cluster is true',
  'labelled-cluster-paused': 'while spec.paused of the Cluster in its label is true',
  'cluster-annotated': `while its Cluster has the annotation ${PausedAnnotation}`,
  annotated: `while it has the annotation ${PausedAnnotation}`,
  'cluster-missing': 'while its Cluster does not exist',
}
/** Claims that the provider must fulfil after the pause. */
export const resumedClaims = Object.keys(blockedClaims).filter((name) => name !== 'cluster-missing')
/** Claims that refer to a pool of another group or kind: the provider must not fulfil them. */
export const foreignClaims = ['foreign-group', 'foreign-kind']
/** A claim that is deleted while its Cluster is paused. */
export const deletedWhilePaused = 'by-name'
/** A claim that is deleted before the provider fulfils it, or soon after. */
const shortLived = 'short-lived'

export async function addresses(bench: Bench): Promise<void> {
  const { kind, example } = bench.pool!
  const pool = bench.namespace
  const { labels, annotations } = example.metadata ?? {}
  await bench.create(kind, {
    spec: example.spec,
    metadata: { name: pool, ...(labels && { labels }), ...(annotations && { annotations }) },
  } as never)
  await createBareCluster(bench, cluster, {})
  await createBareCluster(bench, 'paused', { spec: { paused: true } })
  await createBareCluster(bench, 'annotated', { metadata: { annotations: { [PausedAnnotation]: '' } } })
  // Waits, because the provider may receive a claim before a Cluster or pool that was created earlier.
  await bench.quiet()

  await createClaim(bench, 'by-name', { clusterName: cluster })
  await createClaim(bench, 'by-label', {}, { labels: { [ClusterNameLabel]: cluster } })
  await createClaim(bench, 'other', { clusterName: cluster })
  await createClaim(bench, 'cluster-paused', { clusterName: 'paused' })
  await createClaim(bench, 'labelled-cluster-paused', {}, { labels: { [ClusterNameLabel]: 'paused' } })
  await createClaim(bench, 'cluster-annotated', { clusterName: 'annotated' })
  await createClaim(bench, 'annotated', { clusterName: cluster }, { annotations: { [PausedAnnotation]: '' } })
  await createClaim(bench, 'cluster-missing', { clusterName: 'missing' })
  const poolRef = { apiGroup: kind.group, kind: kind.kind, name: pool }
  await createClaim(bench, 'foreign-group', {
    clusterName: cluster,
    poolRef: { ...poolRef, apiGroup: 'ipam.conform.capstan.dev' },
  })
  await createClaim(bench, 'foreign-kind', { clusterName: cluster, poolRef: { ...poolRef, kind: 'ConformPool' } })
  await untilFulfilled(bench, normalClaims)
  await bench.quiet()
  bench.mark('allocated')

  await bench.patch(Cluster, 'paused', { spec: { paused: null } })
  await bench.patch(Cluster, 'annotated', { metadata: { annotations: { [PausedAnnotation]: null } } })
  await bench.quiet()
  for (const name of resumedClaims) await touch(bench, name)
  await untilFulfilled(bench, resumedClaims)
  bench.mark('resumed')

  await bench.patch(Cluster, cluster, { spec: { paused: true } })
  await bench.quiet()
  await bench.delete(IPAddressClaim, deletedWhilePaused)
  await bench.quiet()
  bench.mark('deleted while paused')
  await bench.patch(Cluster, cluster, { spec: { paused: null } })
  await bench.quiet()
  await touch(bench, deletedWhilePaused)
  await untilReleased(bench, (name) => name === deletedWhilePaused)

  await createClaim(bench, shortLived, { clusterName: cluster })
  await bench.delete(IPAddressClaim, shortLived)
  bench.mark('deleting')
  for (const claim of bench.recording.objects(IPAddressClaim)) await bench.delete(IPAddressClaim, claim.metadata.name)
  await untilReleased(bench, () => true)
  bench.mark('released')
  for (const { metadata } of bench.recording.objects(Cluster)) await bench.delete(Cluster, metadata.name)
}

/** Creates a Cluster without a control plane object: IPAM providers need only the Cluster itself, to know whether it is paused. */
const createBareCluster = (bench: Bench, name: string, { metadata, spec }: { metadata?: object; spec?: object }) =>
  bench.create(Cluster, {
    metadata: { ...metadata, name },
    spec: { controlPlaneRef: refOf(StubControlPlane, name), ...spec },
  } as Input<Cluster>)

const createClaim = (bench: Bench, name: string, spec: object, metadata: Partial<KubeObject['metadata']> = {}) => {
  const { group, kind } = bench.pool!.kind
  const poolRef = { apiGroup: group, kind, name: bench.namespace }
  return bench.create(IPAddressClaim, { metadata: { ...metadata, name }, spec: { poolRef, ...spec } } as Input<IPAddressClaim>)
}

/**
 * Removes the pause annotation of a claim and sets another annotation. This change makes the provider reconcile the claim: providers
 * need not watch Clusters for the end of a pause.
 */
const touch = (bench: Bench, name: string) =>
  orAbsent(
    bench.patch(IPAddressClaim, name, {
      metadata: { annotations: { [PausedAnnotation]: null, 'conform.capstan.dev/touched': '' } },
    }),
  )

/** Returns the IPAddress to which the status of a claim refers, otherwise an IPAddress that refers to the claim, if there is one. */
export const addressOf = (claim: IPAddressClaim, addresses: readonly IPAddress[]): IPAddress | undefined =>
  addresses.find(({ metadata }) => metadata.name === claim.status?.addressRef?.name) ??
  addresses.find(({ spec }) => spec.claimRef.name === claim.metadata.name)

const untilFulfilled = (bench: Bench, names: readonly string[]) =>
  bench.until(`claims ${names.join(', ')} have status.addressRef`, () =>
    names.every((name) => bench.recording.object(IPAddressClaim, name)?.status?.addressRef?.name),
  )

const untilReleased = (bench: Bench, isDeleted: (name: string) => boolean) =>
  bench.until('deleted claims and their IPAddresses no longer exist', () => {
    const names = [
      ...bench.recording.objects(IPAddressClaim).map((claim) => keyOf(claim).name),
      ...bench.recording.objects(IPAddress).map(({ spec }) => spec.claimRef.name),
    ]
    return !names.some(isDeleted)
  })
