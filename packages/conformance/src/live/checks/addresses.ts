/** Live checks of IPAM providers, on the record of the scenario `addresses`. A mark is a named moment of the scenario. */
import { IPAddress, IPAddressClaim } from '@capstan/api'
import { isDeleting, type KubeObject, type OwnerReference } from '@capstan/kube'
import { list, record } from '../../manifests.ts'
import type { ScenarioRecord } from '../bench.ts'
import { type LiveCheck, noFinalizers, orStopped, orWhenStopped, objectsAt } from './check.ts'
import type { History, State } from '../recording.ts'
import {
  addressOf,
  blockedClaims,
  deletedWhilePaused,
  foreignClaims,
  normalClaims,
  resumedClaims,
} from '../scenarios/addresses.ts'
import { type LiveResult, type Observation, observation } from '../verdict.ts'

type ClaimState = State<IPAddressClaim>

const addressCheck = (looksAt: string, run: (recorded: ScenarioRecord) => LiveResult): LiveCheck => ({
  looksAt,
  scenario: 'addresses',
  contract: 'IPAM',
  run,
})

/** Returns the claims with these names, and all IPAddresses, as they were at a mark; none if the scenario did not reach the mark. */
function stateOf(
  recorded: ScenarioRecord,
  mark: string,
  names: readonly string[],
): { claims: ClaimState[]; addresses: IPAddress[] } {
  const claims = objectsAt(recorded, IPAddressClaim, mark).filter(({ object }) => names.includes(object.metadata.name))
  const addresses = objectsAt(recorded, IPAddress, mark).map(({ object }) => object)
  return { claims, addresses }
}

/** Returns the mark `allocated`, or the mark `stopped` if the scenario did not reach it. */
const whenAllocated = (recorded: ScenarioRecord): string => (recorded.marks.has('allocated') ? 'allocated' : 'stopped')

/** Returns each claim that must be fulfilled, with its IPAddress and with all IPAddresses at the same mark. */
const requiredClaims = (recorded: ScenarioRecord) =>
  [
    [whenAllocated(recorded), normalClaims] as const,
    [orWhenStopped(recorded, 'resumed', 'allocated'), resumedClaims] as const,
  ].flatMap(([mark, names]) => {
    const { claims, addresses } = stateOf(recorded, mark, names)
    return claims.map((claim) => ({ claim, address: addressOf(claim.object, addresses), addresses }))
  })

export const claimsFulfilled = addressCheck(
  'An IPAddress for each claim, with an address that no other IPAddress has; also for each claim whose pause has ended.',
  (recorded) =>
    orStopped(
      recorded,
      'claims',
      requiredClaims(recorded).map(({ claim: { object, at }, address, addresses }) => {
        const same = addresses.filter(({ spec }) => spec.address === address?.spec.address)
        const expected = 'an IPAddress whose spec.address is different from all others'
        return observation({ object, field: 'IPAddress', at, expected, found: address?.spec.address, holds: same.length === 1 })
      }),
    ),
)

export const addressRef = addressCheck('status.addressRef of each claim.', (recorded) =>
  orStopped(
    recorded,
    'claims',
    requiredClaims(recorded).map(({ claim: { object, at }, addresses }) => {
      const name = object.status?.addressRef?.name
      const namedAddress = addresses.find(({ metadata }) => metadata.name === name)
      const holds = namedAddress?.spec.claimRef.name === object.metadata.name
      const expected = 'the name of an IPAddress whose spec.claimRef names the claim'
      return observation({ object, field: 'status.addressRef', at, expected, found: name, holds })
    }),
  ),
)

/** Checks that a claim has neither an IPAddress nor a reference to an IPAddress. */
function unfulfilled(claim: ClaimState, addresses: readonly IPAddress[], reason: string): Observation {
  const { object, at } = claim
  const existingName = addressOf(object, addresses)?.metadata.name ?? object.status?.addressRef?.name
  return observation({
    object,
    field: 'IPAddress',
    at,
    expected: `none ${reason}`,
    found: existingName,
    holds: existingName === undefined,
  })
}

export const foreignClaimsLeft = addressCheck('Claims of a pool in another group, and of a pool of another kind.', (recorded) => {
  const { claims, addresses } = stateOf(recorded, whenAllocated(recorded), foreignClaims)
  return orStopped(
    recorded,
    'claims',
    claims.flatMap((claim) => {
      return [unfulfilled(claim, addresses, 'for a pool of another provider'), noFinalizers(claim)]
    }),
  )
})

export const claimPausing = addressCheck(
  'Claims of a paused Cluster, of a Cluster that does not exist, and with the annotation cluster.x-k8s.io/paused; a claim that is deleted while its Cluster is paused.',
  (recorded) => {
    const { claims, addresses } = stateOf(recorded, whenAllocated(recorded), Object.keys(blockedClaims))
    const isRunning = stateOf(recorded, 'allocated', normalClaims).claims.length > 0
    // A provider that never started would also allocate nothing.
    const blocked = isRunning
      ? claims.map((claim) => unfulfilled(claim, addresses, blockedClaims[claim.object.metadata.name]!))
      : []
    return orStopped(recorded, 'claims', [...blocked, ...keptWhilePaused(recorded)])
  },
)

/** Checks that a deleted claim with a finalizer, and its IPAddress, still exist while the Cluster is paused. */
function keptWhilePaused(recorded: ScenarioRecord): Observation[] {
  const time = recorded.marks.get('deleted while paused')
  const claimBefore = stateOf(recorded, 'resumed', [deletedWhilePaused]).claims[0]
  if (!time || !claimBefore?.object.metadata.finalizers?.length) return []
  const { claims, addresses } = stateOf(recorded, 'deleted while paused', [deletedWhilePaused])
  const { object } = claimBefore
  const address = addresses.find(({ spec }) => spec.claimRef.name === deletedWhilePaused)
  const isKept = address !== undefined && !isDeleting(address)
  const expected = 'kept while spec.paused of its Cluster is true'
  return [
    observation({
      object,
      field: 'metadata.finalizers',
      at: time.at,
      expected,
      found: claims[0]?.object.metadata.finalizers,
      holds: claims.length > 0,
    }),
    observation({ object, field: 'IPAddress', at: time.at, expected, found: isKept ? 'kept' : 'deleted', holds: isKept }),
  ]
}

export const claimFinalizer = addressCheck('The finalizers of each claim with an address.', (recorded) =>
  orStopped(
    recorded,
    'claims',
    requiredClaims(recorded)
      .filter(({ address }) => address)
      .map(({ claim: { object, at } }) => hasFinalizer(object, at)),
  ),
)

const hasFinalizer = (object: KubeObject, at: number): Observation => {
  const finalizers = object.metadata.finalizers ?? []
  return observation({
    object,
    field: 'metadata.finalizers',
    at,
    expected: 'at least one',
    found: finalizers,
    holds: finalizers.length > 0,
  })
}

/** Declares a check of each IPAddress that a claim has. */
const ofEachAddress = (
  looksAt: string,
  observe: (address: IPAddress, claim: IPAddressClaim, at: number, recorded: ScenarioRecord) => Observation,
): LiveCheck =>
  addressCheck(looksAt, (recorded) =>
    orStopped(
      recorded,
      'IPAddresses',
      requiredClaims(recorded).flatMap(({ claim, address }) =>
        address ? [observe(address, claim.object, claim.at, recorded)] : [],
      ),
    ),
  )

export const addressName = ofEachAddress('The name of each IPAddress.', (object, claim, at) => {
  const { name } = object.metadata
  const expected = claim.metadata.name
  return observation({ object, field: 'metadata.name', at, expected, found: name, holds: name === expected })
})

export const addressFinalizer = ofEachAddress('The finalizers of each IPAddress.', (object, _, at) => hasFinalizer(object, at))

/** Checks the owner reference from an IPAddress to `owner`. */
function ownedBy(address: IPAddress, owner: KubeObject | undefined, controller: boolean, at: number): Observation {
  const reference = address.metadata.ownerReferences?.find(({ uid }) => uid === owner?.metadata.uid)
  const holds = (reference?.controller ?? false) === controller && reference?.blockOwnerDeletion === true
  return observation({
    object: address,
    field: 'metadata.ownerReferences',
    at,
    expected: `${owner?.kind} ${owner?.metadata.name} with controller ${controller} and blockOwnerDeletion true`,
    found: reference && reportedFields(reference),
    holds,
  })
}

const reportedFields = ({ kind, name, controller, blockOwnerDeletion }: OwnerReference) => ({
  kind,
  name,
  controller,
  blockOwnerDeletion,
})

export const addressClaimOwner = ofEachAddress('The owner reference from each IPAddress to its claim.', (address, claim, at) =>
  ownedBy(address, claim, true, at),
)

export const addressPoolOwner = ofEachAddress(
  'The owner reference from each IPAddress to the pool.',
  (address, _, at, recorded) => ownedBy(address, poolOf(recorded)?.states.at(-1)?.object, false, at),
)

const poolOf = ({ pool, recording }: ScenarioRecord): History | undefined =>
  recording.histories(pool!.kind).find(({ states }) => states[0]?.object.metadata.name === poolName(recording))

/** Returns the name of the pool to which the first claim refers. */
const poolName = (recording: ScenarioRecord['recording']): string | undefined =>
  recording.histories(IPAddressClaim)[0]?.states[0]?.object.spec.poolRef.name

export const released = addressCheck('Deleted claims and their IPAddresses.', (recorded) => {
  const wasDeleted = recorded.marks.has('deleting') || recorded.marks.has('deleted while paused')
  if (!wasDeleted) return orStopped(recorded, 'deletion', [])
  const expected = `deleted within ${recorded.limits.wait / 1000} s`
  const deletedClaims = recorded.recording
    .histories(IPAddressClaim)
    .filter(({ states, deleted }) => deleted || isDeleting(states.at(-1)!.object))
  const names = deletedClaims.map(({ states }) => states[0]!.object.metadata.name)
  const addressesOfClaims = recorded.recording
    .histories(IPAddress)
    .filter(({ states }) => names.includes(states[0]!.object.spec.claimRef.name))
  return [...deletedClaims, ...addressesOfClaims].map(({ states, deleted }: History<IPAddress> | History<IPAddressClaim>) => {
    const { object, at } = states.at(-1)!
    const finalizers = deleted ? [] : (object.metadata.finalizers ?? [])
    return observation({
      object,
      field: 'metadata.finalizers',
      at: deleted?.at ?? at,
      expected,
      found: finalizers,
      holds: deleted !== undefined,
    })
  })
})

export const poolReady = addressCheck('The condition Ready of the pool.', (recorded) => {
  const state = recorded.marks.has('allocated') ? poolOf(recorded)?.states.at(-1) : undefined
  if (!state) return orStopped(recorded, 'pool', [])
  const ready = list(record(state.object.status).conditions)
    .map(record)
    .find(({ type }) => type === 'Ready')
  return [
    observation({
      ...state,
      field: 'status.conditions[Ready]',
      expected: 'a condition',
      found: ready?.status,
      holds: ready !== undefined,
    }),
  ]
})
