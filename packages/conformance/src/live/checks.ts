/** Live checks: each compares what a scenario recorded with what a rule expects. */
import {
  Cluster,
  ClusterNameLabel,
  Machine,
  MachineControlPlaneLabel,
  MachinePool,
  MachinePoolNameLabel,
  PausedAnnotation,
} from '@capstan/api'
import {
  BootstrapConfigContract,
  type ContractField,
  type ContractVersion,
  ControlPlaneContract,
  InfraClusterContract,
  InfraMachineContract,
  InfraMachinePoolContract,
  isPoolProvisioned,
  isValidEndpoint,
  readField,
} from '@capstan/api/contract'
import { isDeleting, type KubeObject, Secret, type UnknownObject } from '@capstan/kube'
import { type ContractName, list, record } from '../manifests.ts'
import type { ScenarioRecord } from './bench.ts'
import { hasReplicas, hasVersion, read } from './read.ts'
import { type History, type State, stateAt } from './recording.ts'
import { PropagatedLabel } from './scenarios/life.ts'
import { deletionPhases } from './scenarios/deletion.ts'
import { externalName } from './scenarios/externally-managed.ts'
import { pausedStatus } from './scenarios/paused.ts'
import type { ScenarioName } from './scenarios/index.ts'
import { type LiveResult, type Observation, observation } from './verdict.ts'

export interface LiveCheck {
  /** The checked behavior, in a sentence for the reference page. */
  readonly looksAt: string
  /** The scenario whose record the check reads. */
  readonly scenario: ScenarioName
  /** The contract of the checked kind: without that kind the check is not applicable. `IPAM`: a kind of address pools. */
  readonly contract?: ContractName | 'IPAM'
  run(recorded: ScenarioRecord): LiveResult
}

/** The field that reports the completed initialization. */
const initializedFields = {
  InfraCluster: InfraClusterContract.provisioned,
  InfraMachine: InfraMachineContract.provisioned,
  InfraMachinePool: InfraMachinePoolContract.provisioned,
  BootstrapConfig: BootstrapConfigContract.dataSecretCreated,
  ControlPlane: ControlPlaneContract.initialized,
} satisfies Record<ContractName, ContractField<boolean>>

/** Whether an object reports that initialization is completed. */
function isInitialized(contract: ContractName, object: KubeObject, version: ContractVersion): boolean {
  try {
    return contract === 'InfraMachinePool'
      ? isPoolProvisioned(object, version)
      : readField(object, initializedFields[contract], version) === true
  } catch {
    return false
  }
}

const historiesOf = ({ target, recording }: ScenarioRecord, contract: ContractName): readonly History[] => {
  const kindUnderTest = target[contract]
  return kindUnderTest ? recording.histories(kindUnderTest.kind) : []
}

const versionOf = ({ target }: ScenarioRecord, contract: ContractName): ContractVersion => target[contract]!.contractVersion

/** Objects of a contract that existed at a moment, and were not being deleted. */
function statesAt(recorded: ScenarioRecord, contract: ContractName, mark: string): readonly { history: History; state: State }[] {
  const time = recorded.marks.get(mark)
  if (time === undefined) return []
  return historiesOf(recorded, contract).flatMap((history) => {
    const state = stateAt(history, time)
    return state && !isDeleting(state.object) ? [{ history, state }] : []
  })
}

/** Returns the mark. When the scenario stopped before this mark, but after the mark `precedingMark`, returns the mark of the stop. */
export const orWhenStopped = ({ marks }: ScenarioRecord, mark: string, precedingMark: string): string =>
  !marks.has(mark) && marks.has(precedingMark) ? 'stopped' : mark

/** Reason for a check without observations: the scenario stopped earlier. */
const stoppedBefore = ({ stopped }: ScenarioRecord, step: string): LiveResult => ({
  notTestable: stopped === undefined ? `there was no object to check: ${step}` : `the scenario stopped: ${stopped}`,
})

/** Returns the observations, or the reason when there are none. */
export const orStopped = (recorded: ScenarioRecord, step: string, observations: readonly Observation[]): LiveResult =>
  observations.length > 0 ? observations : stoppedBefore(recorded, step)

/** A check of each object that exists when the cluster of the scenario `life` is ready, and after it was scaled. */
const whenReady = (
  contract: ContractName,
  looksAt: string,
  observe: (object: UnknownObject, at: number, recorded: ScenarioRecord, history: History) => readonly Observation[],
  marks: readonly string[] = ['ready', 'scaled'],
): LiveCheck => ({
  looksAt,
  scenario: 'life',
  contract,
  run(recorded) {
    const states = marks.flatMap((mark) => statesAt(recorded, contract, mark))
    const observations = states.flatMap(({ history, state }) => observe(state.object, state.at, recorded, history))
    if (states.length > 0 && observations.length === 0) return { notApplicable: 'no object has the field' }
    return orStopped(recorded, 'ready', observations)
  },
})

/** Checks that the field of completed initialization becomes true in each contract version that the kind claims, and stays true. */
export const initialization = (contract: ContractName): LiveCheck => ({
  looksAt: 'The field becomes true in each contract version that the kind claims, and is not taken back before deletion.',
  scenario: 'life',
  contract,
  run(recorded) {
    const { path, chosen } = { path: initializedFields[contract].paths, chosen: versionOf(recorded, contract) }
    const observations: Observation[] = []
    for (const history of historiesOf(recorded, contract)) {
      const first = history.states.find(({ object }) => isInitialized(contract, object, chosen))
      const last = history.states.at(-1)!
      const field = path[chosen]
      if (!first) {
        // Excludes objects that a scale down or a rollout deleted early.
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
    for (const { object, at, contractVersion } of recorded.snapshots.filter((one) => one.contract === contract)) {
      if (contractVersion === chosen || isDeleting(object)) continue
      const holds = isInitialized(contract, object, contractVersion)
      const expected = `true in contract ${contractVersion}, read as ${object.apiVersion}`
      observations.push(observation({ object, field: path[contractVersion], at, expected, found: holds, holds }))
    }
    return orStopped(recorded, 'creation', observations)
  },
})

/** Checks that conditions have the format of metav1.Condition. */
export const conditions = (contract: ContractName): LiveCheck =>
  whenReady(contract, 'Each condition in the status of each object.', (object, at, recorded) => {
    if (versionOf(recorded, contract) !== 'v1beta2') return []
    const status = record(object.status)
    const field = record(status.v1beta2).conditions === undefined ? 'status.conditions' : 'status.v1beta2.conditions'
    const conditionList = record(status.v1beta2).conditions ?? status.conditions
    if (conditionList === undefined) return []
    const invalidCondition = list(conditionList).find((one) => {
      const { type, status: value, reason, severity, lastTransitionTime } = record(one)
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

/** Checks that no infrastructure is provisioned for an object without owner. */
export const ownerFirst = (contract: ContractName): LiveCheck => ({
  looksAt: 'An object without an owner.',
  scenario: 'orphans',
  contract,
  run(recorded) {
    const field = initializedFields[contract].paths[versionOf(recorded, contract)]
    const observations = statesAt(recorded, contract, 'waited').map(({ state: { object, at } }) => {
      const isDone = isInitialized(contract, object, versionOf(recorded, contract)) || providerIDOf(object) !== undefined
      return observation({ object, field, at, expected: 'not true while the object has no owner', found: isDone, holds: !isDone })
    })
    return orStopped(recorded, 'objects without an owner', observations)
  },
})

const providerIDOf = (object: UnknownObject): unknown => record(object.spec).providerID

/** Checks that the finalizers of each deleted object are removed, in each phase. */
export const released = (contract: ContractName, scenario: 'deletion' | 'orphans'): LiveCheck => ({
  looksAt:
    scenario === 'deletion'
      ? `Objects of Clusters that are deleted in the phases ${deletionPhases.join(', ')}.`
      : 'An object without an owner that is deleted.',
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

/** How an object of the pausing scenario is paused, and until when. */
const pauses: readonly { names: readonly string[]; until: string; contracts: readonly ContractName[] }[] = [
  { names: ['paused', 'annotated'], until: 'InfraCluster paused', contracts: ['InfraCluster', 'ControlPlane'] },
  {
    names: ['by-cluster', 'by-cluster-pool'],
    until: 'all paused',
    contracts: ['InfraMachine', 'InfraMachinePool', 'BootstrapConfig'],
  },
  {
    names: ['by-annotation'],
    until: 'annotated objects paused',
    contracts: ['InfraMachine', 'InfraMachinePool', 'BootstrapConfig'],
  },
]

/** Checks that a paused object does not change, and that its condition Paused is True. */
export const pausing = (contract: ContractName): LiveCheck => ({
  looksAt: 'Objects of a paused Cluster and objects with the annotation, which have owners and all that they need.',
  scenario: 'paused',
  contract,
  run(recorded) {
    const version = versionOf(recorded, contract)
    const field = initializedFields[contract].paths[version]
    const observations = pauses
      .filter(({ contracts }) => contracts.includes(contract))
      .flatMap(({ names, until }) =>
        statesAt(recorded, contract, until)
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
  const time = recorded.marks.get('all paused')
  if (time === undefined || !hasReplicas(recorded)) return []
  const machines = recorded.recording
    .histories(Machine)
    .flatMap((history) => stateAt(history as unknown as History, time) ?? [])
    .filter(({ object: { metadata, spec } }) => {
      return metadata.labels?.[MachineControlPlaneLabel] !== undefined && record(spec)['clusterName'] === 'paused'
    })
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

/** Checks that a restart neither changes objects nor stops progress. */
export const survivesRestart = (contract: ContractName): LiveCheck => ({
  looksAt: 'Objects before and after restarts of the provider during creation, when provisioned, and during deletion.',
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
      ({ history }) => !statesBefore.some((one) => one.history === history),
    )
    return [
      ...comparisons,
      ...added.map(({ state: { object, at } }) =>
        observation({
          object,
          field: 'metadata.uid',
          at,
          expected: 'no object that was not there',
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
  looksAt: 'A server-side apply of the second example to a template, as a dry run with the annotation.',
  scenario: 'templates',
  contract,
  run(recorded) {
    const { template, examples, kind } = recorded.target[contract]!
    if (!template) return { notApplicable: `there is no kind ${kind.kind}Template` }
    if (examples.length < 2) return { notTestable: `needs a second example of ${kind.kind} whose spec differs` }
    const answer = recorded.answers.get(`dry run of ${contract}`)
    if (!answer) return stoppedBefore(recorded, 'dry run')
    const { object, at, error } = answer
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
  looksAt: 'Each object of the life of a cluster.',
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

export const infraClusterEndpoint: LiveCheck = {
  looksAt:
    'spec.controlPlaneEndpoint when the infrastructure is provisioned; a Cluster needs one from it or from its control plane.',
  scenario: 'life',
  contract: 'InfraCluster',
  run(recorded) {
    const observations = historiesOf(recorded, 'InfraCluster').flatMap(({ states }) => {
      const first = states.find(({ object }) => isInitialized('InfraCluster', object, versionOf(recorded, 'InfraCluster')))
      if (!first) return []
      const endpoint = read(recorded, 'InfraCluster', first.object, InfraClusterContract.controlPlaneEndpoint)
      const cluster = recorded.recording.histories(Cluster).find(({ states: [state] }) => state?.object.metadata.name === 'life')
      const other = cluster?.states.at(-1)?.object.spec.controlPlaneEndpoint
      if (endpoint === undefined && isValidEndpoint(other)) return []
      return [
        observation({
          object: first.object,
          field: InfraClusterContract.controlPlaneEndpoint.paths[versionOf(recorded, 'InfraCluster')],
          at: first.at,
          expected: 'host and port when provisioned is true',
          found: endpoint,
          holds: isValidEndpoint(endpoint),
        }),
      ]
    })
    if (observations.length === 0 && recorded.marks.has('ready'))
      return { notApplicable: 'the control plane provides the endpoint' }
    return orStopped(recorded, 'provisioned', observations)
  },
}

export const infraClusterFailureDomains = whenReady(
  'InfraCluster',
  'The shape of status.failureDomains.',
  (object, at, recorded) => {
    const version = versionOf(recorded, 'InfraCluster')
    const domains: unknown = read(recorded, 'InfraCluster', object, InfraClusterContract.failureDomains)
    if (domains === undefined) return []
    const holds =
      version === 'v1beta2'
        ? Array.isArray(domains) && domains.every((one) => typeof record(one).name === 'string')
        : !Array.isArray(domains) && typeof domains === 'object'
    const expected = version === 'v1beta2' ? 'a list of objects with a name' : 'a map from names'
    return [
      observation({ object, field: InfraClusterContract.failureDomains.paths[version], at, expected, found: domains, holds }),
    ]
  },
)

export const externallyManaged: LiveCheck = {
  looksAt: 'An InfraCluster with the annotation, before and after the other system reports it as provisioned.',
  scenario: 'externally-managed',
  contract: 'InfraCluster',
  run(recorded) {
    const observations = statesAt(recorded, 'InfraCluster', 'waited').flatMap(({ history, state: { object, at } }) => {
      const managed = (object.metadata.managedFields ?? []).filter(({ subresource }) => subresource === 'status')
      const finalizers = object.metadata.finalizers ?? []
      return [
        observation({
          object,
          field: 'status',
          at,
          expected: 'never written by the provider',
          found: managed.length === 0 ? undefined : object.status,
          holds: managed.length === 0 && record(object.status).initialization === undefined,
        }),
        observation({
          object,
          field: 'metadata.finalizers',
          at,
          expected: 'none',
          found: finalizers,
          holds: finalizers.length === 0,
        }),
        ...(recorded.marks.has('provisioned')
          ? [
              observation({
                object,
                field: 'metadata.finalizers',
                at: history.deleted?.at ?? at,
                expected: `${externalName} is deleted without the provider`,
                found: history.deleted ? 'deleted' : 'still there',
                holds: history.deleted !== undefined,
              }),
            ]
          : []),
      ]
    })
    return orStopped(recorded, 'externally managed', observations)
  },
}

export const infraMachineProviderID: LiveCheck = {
  looksAt: 'spec.providerID of each object: set when provisioned, the same from then on, and different from all others.',
  scenario: 'life',
  contract: 'InfraMachine',
  run(recorded) {
    const version = versionOf(recorded, 'InfraMachine')
    const field = InfraMachineContract.providerID.paths[version]
    const owners = new Map<unknown, History>()
    const observations = historiesOf(recorded, 'InfraMachine').flatMap((history) => {
      const first = history.states.find(({ object }) => isInitialized('InfraMachine', object, version))
      if (!first) return []
      const id: unknown = read(recorded, 'InfraMachine', first.object, InfraMachineContract.providerID)
      const isString = typeof id === 'string' && id !== ''
      const other = owners.get(id)
      owners.set(id, history)
      const changed = history.states.find(
        ({ order, object }) =>
          order >= first.order && read(recorded, 'InfraMachine', object, InfraMachineContract.providerID) !== id,
      )
      return [
        observation({ ...first, field, expected: 'a string when provisioned is true', found: id, holds: isString }),
        observation({
          ...(changed ?? first),
          field,
          expected: 'unchanged once it is set, and of no other object',
          found: changed ? read(recorded, 'InfraMachine', changed.object, InfraMachineContract.providerID) : id,
          holds: !changed && !other,
        }),
      ]
    })
    return orStopped(recorded, 'provisioned', observations)
  },
}

export const infraMachineAddresses = whenReady('InfraMachine', 'The shape of status.addresses.', (object, at, recorded) => {
  const addresses: unknown = read(recorded, 'InfraMachine', object, InfraMachineContract.addresses)
  if (addresses === undefined) return []
  const holds =
    Array.isArray(addresses) &&
    addresses.every((one) => typeof record(one).type === 'string' && typeof record(one).address === 'string')
  const expected = 'a list of objects with type and address'
  return [observation({ object, field: 'status.addresses', at, expected, found: addresses, holds })]
})

export const infraMachineFailureDomain = whenReady('InfraMachine', 'The type of the failure domain.', (object, at, recorded) =>
  [InfraMachineContract.failureDomain, InfraMachineContract.specFailureDomain].flatMap((contractField) => {
    const domain: unknown = read(recorded, 'InfraMachine', object, contractField)
    if (domain === undefined) return []
    const field = contractField.paths[versionOf(recorded, 'InfraMachine')]
    return [observation({ object, field, at, expected: 'a string', found: domain, holds: typeof domain === 'string' })]
  }),
)

/** Checks that an InfraMachine is not provisioned before its Machine or Cluster has `what`. */
export const waitsFor = (what: string, name: string, mark: string): LiveCheck => ({
  looksAt: `An InfraMachine with an owner, ${what}.`,
  scenario: 'late',
  contract: 'InfraMachine',
  run(recorded) {
    const version = versionOf(recorded, 'InfraMachine')
    const observations = statesAt(recorded, 'InfraMachine', mark)
      .filter(({ state: { object } }) => object.metadata.name === name)
      .map(({ state: { object, at } }) => {
        const isDone = isInitialized('InfraMachine', object, version)
        return observation({
          object,
          field: InfraMachineContract.provisioned.paths[version],
          at,
          expected: `not true ${what}`,
          found: isDone,
          holds: !isDone,
        })
      })
    return orStopped(recorded, mark, observations)
  },
})

export const poolProviderIDList: LiveCheck = {
  looksAt: 'spec.providerIDList of each pool, when ready, after scaling up and after scaling down.',
  scenario: 'life',
  contract: 'InfraMachinePool',
  run(recorded) {
    const expected: readonly [string, number][] = [
      ['ready', 1],
      ['pool scaled up', 2],
      ['scaled', 1],
    ]
    const observations = expected.flatMap(([mark, count]) =>
      statesAt(recorded, 'InfraMachinePool', mark).map(({ state: { object, at } }) => {
        const ids: unknown = read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.providerIDList)
        const idList = list(ids)
        const holds =
          idList.length === count && new Set(idList).size === count && idList.every((id) => typeof id === 'string' && id !== '')
        const field = 'spec.providerIDList'
        return observation({ object, field, at, expected: `${count} different strings`, found: ids, holds })
      }),
    )
    return observations.length > 0 && !recorded.marks.has('scaled')
      ? [...observations, ...poolStuck(recorded)]
      : orStuckPool(recorded, observations)
  },
}

export const poolReplicas: LiveCheck = {
  looksAt: 'status.replicas of each pool, when ready, after scaling up and after scaling down.',
  scenario: 'life',
  contract: 'InfraMachinePool',
  run(recorded) {
    const observations = (
      [
        ['ready', 1],
        ['pool scaled up', 2],
        ['scaled', 1],
      ] as const
    ).flatMap(([mark, count]) =>
      statesAt(recorded, 'InfraMachinePool', mark).map(({ state: { object, at } }) => {
        const replicas: unknown = read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.replicas)
        const holds = replicas === count
        return observation({ object, field: 'status.replicas', at, expected: String(count), found: replicas, holds })
      }),
    )
    return observations.length > 0 && !recorded.marks.has('scaled')
      ? [...observations, ...poolStuck(recorded)]
      : orStuckPool(recorded, observations)
  },
}

/** For a scenario that stopped while it waited for the pool: the last state shows the missing fields. */
function poolStuck(recorded: ScenarioRecord): Observation[] {
  const stopped = recorded.marks.get('stopped')
  const pool = recorded.recording.histories(MachinePool)[0]?.states.at(-1)?.object
  if (stopped === undefined || pool?.spec.replicas === undefined) return []
  return statesAt(recorded, 'InfraMachinePool', 'stopped').flatMap(({ state: { object, at } }) => {
    const ids = list(read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.providerIDList))
    const replicas: unknown = read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.replicas)
    const holds = ids.length === pool.spec.replicas && replicas === pool.spec.replicas
    const expected = `${pool.spec.replicas} IDs and replicas, as spec.replicas of the MachinePool`
    const field = 'spec.providerIDList and status.replicas'
    return holds ? [] : [observation({ object, field, at, expected, found: { ids: ids.length, replicas }, holds })]
  })
}

const orStuckPool = (recorded: ScenarioRecord, observations: readonly Observation[]): LiveResult =>
  orStopped(recorded, 'ready', observations.length > 0 ? observations : poolStuck(recorded))

export const poolBothReady = whenReady(
  'InfraMachinePool',
  'Both fields of each pool.',
  (object, at, recorded) => {
    if (versionOf(recorded, 'InfraMachinePool') !== 'v1beta2') return []
    return [InfraMachinePoolContract.provisioned, InfraMachinePoolContract.ready].map((contractField) => {
      const value: unknown = read(recorded, 'InfraMachinePool', object, contractField)
      return observation({
        object,
        field: contractField.paths.v1beta2,
        at,
        expected: 'true',
        found: value,
        holds: value === true,
      })
    })
  },
  ['ready'],
)

export const poolMachineKind: LiveCheck = {
  looksAt: 'Objects of status.infrastructureMachineKind with the labels of the pool, as many as there are replicas.',
  scenario: 'life',
  contract: 'InfraMachinePool',
  run(recorded) {
    const states = statesAt(recorded, 'InfraMachinePool', 'pool scaled up')
    if (states.length === 0) return stoppedBefore(recorded, 'scaled')
    const kinds = states.flatMap(({ state: { object, at } }) => {
      const kind: unknown = read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.infrastructureMachineKind)
      return kind === undefined ? [] : [{ object, at, kind }]
    })
    if (kinds.length === 0) return { notApplicable: 'the pool has no status.infrastructureMachineKind' }
    if (kinds.some(({ kind }) => kind !== recorded.target.InfraMachine?.kind.kind)) {
      return { notTestable: 'the machines of the pool are of a kind that is not under test' }
    }
    return kinds.map(({ object, at }) => {
      const machines = statesAt(recorded, 'InfraMachine', 'pool scaled up').filter(({ state }) => {
        const labels = state.object.metadata.labels ?? {}
        return labels[ClusterNameLabel] === 'life' && labels[MachinePoolNameLabel] !== undefined
      })
      return observation({
        object,
        field: 'status.infrastructureMachineKind',
        at,
        expected: '2 objects with the labels of Cluster and pool',
        found: machines.length,
        holds: machines.length === 2,
      })
    })
  },
}

/** The Secret of each BootstrapConfig at a moment. */
function dataSecrets(recorded: ScenarioRecord, mark: string) {
  const time = recorded.marks.get(mark)
  if (time === undefined) return []
  const secrets = recorded.recording.histories(Secret).flatMap((history) => stateAt(history as unknown as History, time) ?? [])
  return statesAt(recorded, 'BootstrapConfig', mark).map(({ state: { object, at } }) => {
    const name: unknown = read(recorded, 'BootstrapConfig', object, BootstrapConfigContract.dataSecretName)
    return { config: object, at, name, secret: secrets.find(({ object: one }) => one.metadata.name === name)?.object }
  })
}

export const bootstrapDataSecret: LiveCheck = {
  looksAt:
    'The Secret that status.dataSecretName names: its label, its controller and its key value. Its content is not printed.',
  scenario: 'life',
  contract: 'BootstrapConfig',
  run(recorded) {
    const observations = dataSecrets(recorded, 'ready').flatMap(({ config, at, name, secret }) => {
      const owner = secret?.metadata.ownerReferences?.find(({ controller }) => controller)
      const compare = (field: string, expected: string, value: unknown, holds: boolean): Observation =>
        observation({ object: secret ?? config, field, at, expected, found: value, holds })
      if (!secret) return [compare('status.dataSecretName', 'the name of a Secret', name, false)]
      return [
        compare('status.dataSecretName', 'the name of a Secret', name, true),
        compare(
          `metadata.labels[${ClusterNameLabel}]`,
          'life',
          secret.metadata.labels?.[ClusterNameLabel],
          secret.metadata.labels?.[ClusterNameLabel] === 'life',
        ),
        compare(
          'metadata.ownerReferences',
          `${config.kind} ${config.metadata.name} as controller`,
          owner && `${owner.kind} ${owner.name}`,
          owner?.uid === config.metadata.uid,
        ),
        compare('data.value', 'bootstrap data', Object.keys(record(secret.data)), Boolean(record(secret.data).value)),
      ]
    })
    return orStopped(recorded, 'ready', observations)
  },
}

const readableFormats = ['cloud-config', 'ignition', undefined]

/** Whether bootstrap data contain a text; formats that only their provider can read are not checked. */
const bootstrapContains = (text: RegExp, expected: string, isMeant: (config: UnknownObject) => boolean): LiveCheck => ({
  looksAt: `Bootstrap data in the formats cloud-config and ignition: ${expected}.`,
  scenario: 'life',
  contract: 'BootstrapConfig',
  run(recorded) {
    const secrets = dataSecrets(recorded, 'ready').filter(({ config, secret }) => secret !== undefined && isMeant(config))
    const observations = secrets.flatMap(({ secret, at }) => {
      const { value, format } = record(secret!.data)
      const name = typeof format === 'string' ? atob(format) : undefined
      if (!readableFormats.includes(name)) return []
      // Ignition has files as percent-encoded URLs.
      const holds = typeof value === 'string' && text.test(atob(value).replaceAll('%2F', '/'))
      return [
        observation({ object: secret!, field: 'data.value', at, expected, found: holds ? 'contained' : 'not contained', holds }),
      ]
    })
    if (secrets.length > 0 && observations.length === 0)
      return { notTestable: 'the format of the bootstrap data is of the provider' }
    return orStopped(recorded, 'ready', observations)
  },
})

export const bootstrapSentinelFile = bootstrapContains(
  /bootstrap-success\.complete/,
  'the data create bootstrap-success.complete',
  () => true,
)

export const bootstrapTaint = bootstrapContains(
  /node\.cluster\.x-k8s\.io\/uninitialized/,
  'the data taint Nodes of workers with node.cluster.x-k8s.io/uninitialized',
  ({ metadata }) => metadata.labels?.[MachineControlPlaneLabel] === undefined,
)

const controlPlaneCheck = (
  looksAt: string,
  observe: (object: UnknownObject, at: number, recorded: ScenarioRecord) => LiveResult,
  mark = 'ready',
): LiveCheck => ({
  looksAt,
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    const [first] = statesAt(
      recorded,
      'ControlPlane',
      orWhenStopped(recorded, mark, mark === 'ready' ? mark : 'control plane scales'),
    )
    return first ? observe(first.state.object, first.state.at, recorded) : stoppedBefore(recorded, mark)
  },
})

const noReplicas = { notApplicable: 'the kind has no spec.replicas' }

export const controlPlaneEndpoint = controlPlaneCheck('spec.controlPlaneEndpoint, when it is set.', (object, at, recorded) => {
  const endpoint = read(recorded, 'ControlPlane', object, ControlPlaneContract.controlPlaneEndpoint)
  if (endpoint === undefined) return { notApplicable: 'the infrastructure provides the endpoint' }
  const holds = isValidEndpoint(endpoint)
  return [observation({ object, field: 'spec.controlPlaneEndpoint', at, expected: 'host and port', found: endpoint, holds })]
})

export const controlPlaneReplicas = controlPlaneCheck(
  'The counts and the selector in the status after scaling to 3.',
  (object, at, recorded) => {
    if (!hasReplicas(recorded)) return noReplicas
    const version = versionOf(recorded, 'ControlPlane')
    const counts = [ControlPlaneContract.replicas, ControlPlaneContract.upToDateReplicas].map((contractField) => {
      const value: unknown = read(recorded, 'ControlPlane', object, contractField)
      return observation({ object, field: contractField.paths[version], at, expected: '3', found: value, holds: value === 3 })
    })
    const selector: unknown = read(recorded, 'ControlPlane', object, ControlPlaneContract.selector)
    const holds = typeof selector === 'string' && selector !== ''
    return [...counts, observation({ object, field: 'status.selector', at, expected: 'a selector', found: selector, holds })]
  },
  'scaled',
)

export const controlPlaneScale: LiveCheck = {
  looksAt: 'The answer to a GET of the scale subresource.',
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasReplicas(recorded)) return noReplicas
    const answer = recorded.answers.get('scale')
    if (!answer) return stoppedBefore(recorded, 'ready')
    const { object, at, error } = answer
    const expected = 'spec.replicas and status.selector'
    return [observation({ object, field: 'scale', at, expected, found: error ?? 'both', holds: error === undefined })]
  },
}

export const controlPlaneVersion: LiveCheck = {
  looksAt: 'status.versions or status.version when ready, during an upgrade (from old to new), and after it.',
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasVersion(recorded)) return { notApplicable: 'the kind has no spec.version' }
    const { kubernetes, upgradeTo } = recorded.versions
    const versionChanges = historiesOf(recorded, 'ControlPlane').flatMap(({ states }) =>
      states.flatMap(({ object, at }) => {
        const versions = read(recorded, 'ControlPlane', object, ControlPlaneContract.statusVersions)?.map((one) => one.version)
        if (!versions || versions.length < 2) return []
        const expected = `${kubernetes} before ${upgradeTo}`
        const holds = versions.join() === [kubernetes, upgradeTo].join()
        return [observation({ object, field: 'status.versions', at, expected, found: versions, holds })]
      }),
    )
    const reported = (mark: string, expected: string) =>
      statesAt(recorded, 'ControlPlane', mark).map(({ state: { object, at } }) => {
        const versions = read(recorded, 'ControlPlane', object, ControlPlaneContract.statusVersions)?.map((one) => one.version)
        const running = versions ?? [read(recorded, 'ControlPlane', object, ControlPlaneContract.statusVersion)]
        const field = versions ? 'status.versions' : 'status.version'
        return observation({ object, field, at, expected, found: running, holds: running.join() === expected })
      })
    const stopped = recorded.marks.has('upgrade begins') && !recorded.marks.has('upgraded') ? reported('stopped', upgradeTo) : []
    const ready = orWhenStopped(recorded, 'ready', 'initialized')
    return orStopped(recorded, 'ready', [
      ...reported(ready, kubernetes),
      ...versionChanges,
      ...reported('upgraded', upgradeTo),
      ...stopped,
    ])
  },
}

/** Control plane Machines at a moment. */
function membersAt(recorded: ScenarioRecord, mark: string): readonly State<Machine>[] {
  const time = recorded.marks.get(mark)
  if (time === undefined) return []
  return recorded.recording.histories(Machine).flatMap((history) => {
    const state = stateAt(history, time)
    const owner = state?.object.metadata.ownerReferences?.find(({ controller }) => controller)
    return state && owner?.kind === recorded.target.ControlPlane?.kind.kind ? [state] : []
  })
}

/** A check of the Machines that a control plane owns. */
const membersCheck = (
  looksAt: string,
  mark: string,
  observe: (machine: Machine, at: number, recorded: ScenarioRecord, members: readonly State<Machine>[]) => readonly Observation[],
): LiveCheck => ({
  looksAt,
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasReplicas(recorded)) return noReplicas
    const members = membersAt(recorded, mark)
    const observed = members.flatMap(({ object, at }) => observe(object, at, recorded, members))
    if (members.length > 0 && observed.length === 0)
      return { notApplicable: 'the Cluster has no failure domains for control planes' }
    return orStopped(recorded, mark, observed)
  },
})

export const controlPlaneMachineLabel = membersCheck(
  'The label of each Machine of the control plane.',
  'initialized',
  (object, at) => {
    const value = object.metadata.labels?.[MachineControlPlaneLabel]
    const field = `metadata.labels[${MachineControlPlaneLabel}]`
    return [observation({ object, field, at, expected: 'an empty value', found: value, holds: value === '' })]
  },
)

export const controlPlaneMinReady = membersCheck('The condition UpToDate of each Machine.', 'ready', (object, at) => {
  const condition = object.status?.conditions?.find(({ type }) => type === 'UpToDate')
  const holds = condition?.status === 'True'
  return [observation({ object, field: 'status.conditions[UpToDate]', at, expected: 'True', found: condition?.status, holds })]
})

export const controlPlanePlacement = membersCheck(
  'spec.failureDomain of three Machines, when the Cluster has failure domains for control planes.',
  'scaled',
  (object, at, recorded, members) => {
    const cluster = recorded.recording.histories(Cluster)[0]?.states.findLast((state) => state.at <= at)?.object
    const domains = (cluster?.status?.failureDomains ?? []).filter(({ controlPlane }) => controlPlane).map(({ name }) => name)
    if (domains.length < 2) return []
    const used = new Set(members.map((one) => one.object.spec.failureDomain))
    const { failureDomain } = object.spec
    const expected = `one of ${domains.join(', ')}, spread over ${Math.min(domains.length, members.length)} of them`
    const holds =
      failureDomain !== undefined && domains.includes(failureDomain) && used.size === Math.min(domains.length, members.length)
    return [observation({ object, field: 'spec.failureDomain', at, expected, found: failureDomain, holds })]
  },
)

export const controlPlaneMetadata: LiveCheck = {
  looksAt: 'Machines before and after a label is added to spec.machineTemplate.metadata.',
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasReplicas(recorded)) return noReplicas
    const membersBefore = membersAt(recorded, 'metadata changes')
    const membersAfter = membersAt(recorded, 'metadata changed')
    const observations = membersAfter.flatMap(({ object, at }) => [
      observation({
        object,
        field: `metadata.labels[${PropagatedLabel}]`,
        at,
        expected: 'yes',
        found: object.metadata.labels?.[PropagatedLabel],
        holds: object.metadata.labels?.[PropagatedLabel] === 'yes',
      }),
      observation({
        object,
        field: 'metadata.uid',
        at,
        expected: 'a Machine that was there before the change',
        found: object.metadata.uid,
        holds: membersBefore.some((one) => one.object.metadata.uid === object.metadata.uid),
      }),
    ])
    return orStopped(recorded, 'change of metadata', observations)
  },
}

/** Secrets of a Cluster by the end of their names. */
const clusterSecrets = (recorded: ScenarioRecord, names: readonly string[]): LiveResult => {
  const mark = orWhenStopped(recorded, 'ready', 'infrastructure provisioned')
  const time = recorded.marks.get(mark)
  const [controlPlane] = statesAt(recorded, 'ControlPlane', mark)
  if (time === undefined || !controlPlane) return stoppedBefore(recorded, 'ready')
  return names.flatMap((name) => {
    const secret = recorded.recording
      .histories(Secret)
      .flatMap((history) => stateAt(history as unknown as History, time) ?? [])
      .find(({ object }) => object.metadata.name === `life-${name}`)
    const { object, at } = secret ?? controlPlane.state
    const compare = (field: string, expected: string, found: unknown, holds: boolean) =>
      observation({ object, field, at, expected, found, holds })
    if (!secret) return [compare('Secrets', `a Secret life-${name}`, undefined, false)]
    const label = object.metadata.labels?.[ClusterNameLabel]
    return [
      compare('type', 'cluster.x-k8s.io/secret', object.type, object.type === 'cluster.x-k8s.io/secret'),
      compare(`metadata.labels[${ClusterNameLabel}]`, 'life', label, label === 'life'),
      ...(name === 'kubeconfig'
        ? [compare('data.value', 'a kubeconfig', Object.keys(record(object.data)), Boolean(record(object.data).value))]
        : []),
    ]
  })
}

export const controlPlaneKubeconfig: LiveCheck = {
  looksAt: 'The Secret <cluster>-kubeconfig: its type, its label and its key value. Its content is not printed.',
  scenario: 'life',
  contract: 'ControlPlane',
  run: (recorded) => clusterSecrets(recorded, ['kubeconfig']),
}

export const controlPlaneCertificates: LiveCheck = {
  looksAt: 'The Secret <cluster>-ca: its type and its label.',
  scenario: 'life',
  contract: 'ControlPlane',
  run: (recorded) => clusterSecrets(recorded, ['ca']),
}

export const ownerChain: LiveCheck = {
  looksAt: 'The owners of each object of the provider when the cluster is ready, followed to the Cluster.',
  scenario: 'life',
  run(recorded) {
    const time = recorded.marks.get('ready')
    if (time === undefined) return stoppedBefore(recorded, 'ready')
    const contracts = Object.keys(recorded.target) as ContractName[]
    const everything = recorded.recording.everything().flatMap((history) => stateAt(history, time) ?? [])
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
        const expected = 'owned by the Cluster, directly or by way of others'
        return observation({ object, field: 'metadata.ownerReferences', at, expected, found: owners, holds: reaches(object) })
      }),
    )
  },
}
