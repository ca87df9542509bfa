/** Live checks that apply to the objects of several contracts. */
import { Cluster, Machine, MachineControlPlaneLabel, PausedAnnotation } from '@capstan/api'
import { isDeleting, type KubeObject, type UnknownObject } from '@capstan/kube'
import { type ContractName, list, record } from '../../manifests.ts'
import type { ScenarioRecord } from '../bench.ts'
import { hasReplicas } from '../read.ts'
import { stateAt } from '../recording.ts'
import { deletionPhases } from '../scenarios/deletion.ts'
import { pausedStatus } from '../scenarios/paused.ts'
import { type Observation, observation } from '../verdict.ts'
import {
  historiesOf,
  initializedFields,
  isInitialized,
  type LiveCheck,
  orStopped,
  statesAt,
  stoppedBefore,
  contractVersionOf,
  whenReady,
  objectsAt,
} from './check.ts'

/**
 * Checks that the field for completed initialization becomes true in the contract version that core chooses and remains true, and that it
 * is also true in each other contract version that the kind claims.
 */
export const initialization = (contract: ContractName): LiveCheck => ({
  looksAt:
    'The field for completed initialization. In the contract version that core chooses, it becomes true and remains true until deletion; in each other contract version that the kind claims, it is true once the cluster is ready.',
  scenario: 'life',
  contract,
  run(recorded) {
    const { paths } = initializedFields[contract]
    const chosen = contractVersionOf(recorded, contract)
    const observations: Observation[] = []
    for (const history of historiesOf(recorded, contract)) {
      const first = history.states.find(({ object }) => isInitialized(contract, object, chosen))
      const last = history.states.at(-1)!
      const field = paths[chosen]
      if (!first) {
        // A scale down or a rollout may delete objects before they are initialized.
        if (isDeleting(last.object) || history.deleted) continue
        const expected = `true within ${recorded.limits.wait / 1000} s`
        observations.push(observation({ object: last.object, field, at: last.at, expected, found: false, holds: false }))
        continue
      }
      const reverted = history.states.find(
        ({ order, object }) => order >= first.order && !isDeleting(object) && !isInitialized(contract, object, chosen),
      )
      const { object, at } = reverted ?? first
      observations.push(
        observation({ object, field, at, expected: 'true, and never false again', found: !reverted, holds: !reverted }),
      )
    }
    for (const { object, at, contractVersion } of recorded.snapshots.filter((snapshot) => snapshot.contract === contract)) {
      if (contractVersion === chosen || isDeleting(object)) continue
      const holds = isInitialized(contract, object, contractVersion)
      const expected = `true in contract ${contractVersion}, read as ${object.apiVersion}`
      observations.push(observation({ object, field: paths[contractVersion], at, expected, found: holds, holds }))
    }
    return orStopped(recorded, 'creation', observations)
  },
})

/** Checks that conditions have the format of metav1.Condition; only in contract v1beta2. */
export const conditions = (contract: ContractName): LiveCheck =>
  whenReady(contract, 'Each condition in the status of each object.', (object, at, recorded) => {
    if (contractVersionOf(recorded, contract) !== 'v1beta2') return []
    const status = record(object.status)
    // Prefers status.v1beta2.conditions, as core does for all contracts except InfraMachinePool.
    const field = record(status.v1beta2).conditions === undefined ? 'status.conditions' : 'status.v1beta2.conditions'
    const conditionList = record(status.v1beta2).conditions ?? status.conditions
    if (conditionList === undefined) return []
    const invalidCondition = list(conditionList).find((condition) => {
      const { type, status: value, reason, severity, lastTransitionTime } = record(condition)
      return !(
        typeof type === 'string' &&
        ['True', 'False', 'Unknown'].includes(value as string) &&
        typeof reason === 'string' &&
        reason !== '' &&
        typeof lastTransitionTime === 'string' &&
        severity === undefined
      )
    })
    const holds = Array.isArray(conditionList) && invalidCondition === undefined
    const expected = 'a list of conditions with type, status, reason and lastTransitionTime, without severity'
    return [observation({ object, field, at, expected, found: invalidCondition ?? conditionList, holds })]
  })

/** Checks that an object without an owner is not initialized and has no provider ID. */
export const ownerFirst = (contract: ContractName): LiveCheck => ({
  looksAt: 'An object without an owner.',
  scenario: 'orphans',
  contract,
  run(recorded) {
    const field = initializedFields[contract].paths[contractVersionOf(recorded, contract)]
    const observations = statesAt(recorded, contract, 'waited').map(({ state: { object, at } }) => {
      const isDone = isInitialized(contract, object, contractVersionOf(recorded, contract))
      const { providerID } = record(object.spec)
      if (!isDone && providerID !== undefined) {
        const expected = 'absent while the object has no owner'
        return observation({ object, field: 'spec.providerID', at, expected, found: providerID, holds: false })
      }
      return observation({ object, field, at, expected: 'not true while the object has no owner', found: isDone, holds: !isDone })
    })
    return orStopped(recorded, 'objects without an owner', observations)
  },
})

/**
 * Checks that the provider completes the deletion of each object. In the scenario `deletion`, each Cluster is deleted in another phase of its
 * creation.
 */
export const released = (contract: ContractName, scenario: 'deletion' | 'orphans'): LiveCheck => ({
  looksAt:
    scenario === 'deletion'
      ? `Objects of Clusters that are deleted in the phases ${deletionPhases.join(', ')}.`
      : 'The deletion of an object without an owner.',
  scenario,
  contract,
  run(recorded) {
    const observations = historiesOf(recorded, contract).flatMap(({ states, deleted }) => {
      const { object, at } = states.at(-1)!
      if (!deleted && !isDeleting(object)) return []
      const expected = `deleted within ${recorded.limits.wait / 1000} s of metadata.deletionTimestamp`
      const finalizers = object.metadata.finalizers ?? []
      const holds = deleted !== undefined
      return [
        observation({
          object,
          field: 'metadata.finalizers',
          at: deleted?.at ?? at,
          expected,
          found: holds ? [] : finalizers,
          holds,
        }),
      ]
    })
    return orStopped(recorded, 'deletion', observations)
  },
})

/** Objects of the scenario `paused`, and the mark (a named moment of the scenario) at which the checks read the paused objects. */
const pauses: readonly { names: readonly string[]; mark: string; contracts: readonly ContractName[] }[] = [
  { names: ['paused', 'annotated'], mark: 'InfraCluster paused', contracts: ['InfraCluster', 'ControlPlane'] },
  {
    names: ['by-cluster', 'by-cluster-pool'],
    mark: 'all paused',
    contracts: ['InfraMachine', 'InfraMachinePool', 'BootstrapConfig'],
  },
  {
    names: ['by-annotation'],
    mark: 'annotated objects paused',
    contracts: ['InfraMachine', 'InfraMachinePool', 'BootstrapConfig'],
  },
]

/**
 * Checks that an object is not initialized while it is paused, and that its condition Paused is True. For control planes, also checks that
 * no Machine is added.
 */
export const pausing = (contract: ContractName): LiveCheck => ({
  looksAt:
    'Objects of a paused Cluster and objects with the annotation cluster.x-k8s.io/paused, which the provider could provision if they were not paused.',
  scenario: 'paused',
  contract,
  run(recorded) {
    const version = contractVersionOf(recorded, contract)
    const field = initializedFields[contract].paths[version]
    const observations = pauses
      .filter(({ contracts }) => contracts.includes(contract))
      .flatMap(({ names, mark }) =>
        statesAt(recorded, contract, mark)
          .filter(({ state: { object } }) => names.includes(object.metadata.name))
          .flatMap(({ state: { object, at } }) => {
            const isDone = isInitialized(contract, object, version)
            const pauseSource = object.metadata.annotations?.[PausedAnnotation] === undefined ? 'its Cluster' : 'its annotation'
            const paused = pausedStatus(object)
            return [
              observation({
                object,
                field,
                at,
                expected: `not true while paused by ${pauseSource}`,
                found: isDone,
                holds: !isDone,
              }),
              observation({
                object,
                field: 'status.conditions[Paused]',
                at,
                expected: `True while paused by ${pauseSource}`,
                found: paused,
                holds: paused === 'True',
              }),
            ]
          }),
      )
    return orStopped(recorded, 'paused objects', [...observations, ...(contract === 'ControlPlane' ? pausedScale(recorded) : [])])
  },
})

/** Checks that a control plane keeps one Machine when its replicas are set to three while its Cluster is paused. */
function pausedScale(recorded: ScenarioRecord): Observation[] {
  if (!hasReplicas(recorded)) return []
  const machines = objectsAt(recorded, Machine, 'all paused').filter(
    ({ object: { metadata, spec } }) =>
      metadata.labels?.[MachineControlPlaneLabel] !== undefined && spec.clusterName === 'paused',
  )
  return machines.slice(0, 1).map(({ object, at }) =>
    observation({
      object,
      field: 'control plane Machines',
      at,
      expected: '1 while the Cluster is paused and spec.replicas is 3',
      found: machines.length,
      holds: machines.length === 1,
    }),
  )
}

/**
 * Checks that a restart of the provider changes no spec and neither adds nor removes objects, and that a restart during the deletion does not
 * prevent the deletion.
 */
export const survivesRestart = (contract: ContractName): LiveCheck => ({
  looksAt:
    'UID and spec of provisioned objects before and after a restart of the provider; then the deletion of all objects, during which the provider is restarted again.',
  scenario: 'restarted',
  contract,
  run(recorded) {
    const statesBefore = statesAt(recorded, contract, 'before restart')
    const restarted = recorded.marks.get('after restart')
    if (statesBefore.length === 0 || restarted === undefined) return stoppedBefore(recorded, 'restart')
    const comparisons = statesBefore.map(({ history, state }) => {
      const stateAfter = stateAt(history, restarted)
      const [identityBefore, identityAfter] = [identityOf(state.object), stateAfter && identityOf(stateAfter.object)]
      return observation({
        object: state.object,
        field: 'spec',
        at: stateAfter?.at ?? restarted.at,
        expected: `as before the restart: ${identityBefore}`,
        found: identityAfter,
        holds: identityBefore === identityAfter,
      })
    })
    const added = statesAt(recorded, contract, 'after restart').filter(
      ({ history }) => !statesBefore.some((stateBefore) => stateBefore.history === history),
    )
    return [
      ...comparisons,
      ...added.map(({ state: { object, at } }) =>
        observation({
          object,
          field: 'metadata.uid',
          at,
          expected: 'no object that did not exist before the restart',
          found: 'created',
          holds: false,
        }),
      ),
      ...historiesOf(recorded, contract).map(({ states, deleted }) =>
        observation({
          object: states.at(-1)!.object,
          field: 'metadata.finalizers',
          at: deleted?.at ?? states.at(-1)!.at,
          expected: 'deleted, although the provider was restarted',
          found: deleted ? [] : states.at(-1)!.object.metadata.finalizers,
          holds: deleted !== undefined,
        }),
      ),
    ]
  },
})

const identityOf = ({ metadata, spec }: UnknownObject): string => JSON.stringify([metadata.uid, spec])

/** Checks that the dry run of a changed template is accepted. */
export const dryRunAccepted = (contract: ContractName): LiveCheck => ({
  looksAt:
    'A server-side apply of the second example to a template, as a dry run with the annotation topology.cluster.x-k8s.io/dry-run.',
  scenario: 'templates',
  contract,
  run(recorded) {
    const { template, examples, kind } = recorded.target[contract]!
    if (!template) return { notApplicable: `there is no kind ${kind.kind}Template` }
    if (examples.length < 2) return { notTestable: `needs a second example of ${kind.kind} whose spec differs` }
    const response = recorded.requestResults.get(`dry run of ${contract}`)
    if (!response) return stoppedBefore(recorded, 'dry run')
    const { object, at, error } = response
    return [
      observation({
        object,
        field: 'spec.template.spec',
        at,
        expected: 'the dry run is accepted',
        found: error,
        holds: error === undefined,
      }),
    ]
  },
})

export const typeAndObjectMeta: LiveCheck = {
  looksAt: 'apiVersion, kind, name and UID of each object of the provider when the cluster is ready.',
  scenario: 'life',
  run(recorded) {
    const observations = Object.keys(recorded.target).flatMap((contract) =>
      statesAt(recorded, contract as ContractName, 'ready').map(({ state: { object, at } }) => {
        const holds = [object.apiVersion, object.kind, object.metadata.name, object.metadata.uid].every(Boolean)
        return observation({ object, field: 'metadata', at, expected: 'apiVersion, kind and metadata', found: holds, holds })
      }),
    )
    return orStopped(recorded, 'ready', observations)
  },
}

export const ownerChain: LiveCheck = {
  looksAt: 'The owners of each object of the provider when the cluster is ready, followed to the Cluster.',
  scenario: 'life',
  run(recorded) {
    const time = recorded.marks.get('ready')
    if (time === undefined) return stoppedBefore(recorded, 'ready')
    const contracts = Object.keys(recorded.target) as ContractName[]
    const everything = recorded.recording.allHistories().flatMap((history) => stateAt(history, time) ?? [])
    const byUid = new Map(everything.map(({ object }) => [object.metadata.uid, object]))
    const reaches = (object: KubeObject, depth = 0): boolean =>
      object.kind === Cluster.kind ||
      (depth < 10 &&
        (object.metadata.ownerReferences ?? []).some(({ uid }) => {
          const owner = byUid.get(uid)
          return owner !== undefined && reaches(owner, depth + 1)
        }))
    return contracts.flatMap((contract) =>
      statesAt(recorded, contract, 'ready').map(({ state: { object, at } }) => {
        const owners = (object.metadata.ownerReferences ?? []).map(({ kind, name }) => `${kind} ${name}`)
        const expected = 'owned by the Cluster, directly or through other owners'
        return observation({ object, field: 'metadata.ownerReferences', at, expected, found: owners, holds: reaches(object) })
      }),
    )
  },
}
