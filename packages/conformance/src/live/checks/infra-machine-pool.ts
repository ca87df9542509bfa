/** Live checks of the contract InfraMachinePool. */
import { ClusterNameLabel, MachinePool, MachinePoolNameLabel } from '@capstan/api'
import { InfraMachinePoolContract } from '@capstan/api/contract'
import type { UnknownObject } from '@capstan/kube'
import { list } from '../../manifests.ts'
import type { ScenarioRecord } from '../bench.ts'
import { read } from '../read.ts'
import { type LiveResult, type Observation, observation, type ObservationOf } from '../verdict.ts'
import { type LiveCheck, orStopped, statesAt, stoppedBefore, contractVersionOf, whenReady } from './check.ts'

/** Expected number of replicas of each pool at marks (named moments) of the scenario `life`. */
const expectedReplicas = [
  ['ready', 1],
  ['pool scaled up', 2],
  ['scaled', 1],
] as const

/** Declares a check of each pool with its expected number of replicas, when ready, after scaling up and after scaling down. */
const whenScaled = (
  field: string,
  observe: (
    pool: UnknownObject,
    replicas: number,
    recorded: ScenarioRecord,
  ) => Pick<ObservationOf, 'expected' | 'found' | 'holds'>,
): LiveCheck => ({
  looksAt: `${field} of each pool, when ready, after scaling up and after scaling down.`,
  scenario: 'life',
  contract: 'InfraMachinePool',
  run(recorded) {
    const observations = expectedReplicas.flatMap(([mark, replicas]) =>
      statesAt(recorded, 'InfraMachinePool', mark).map(({ state: { object, at } }) =>
        observation({ object, at, field, ...observe(object, replicas, recorded) }),
      ),
    )
    return observations.length > 0 && !recorded.marks.has('scaled')
      ? [...observations, ...poolStuck(recorded)]
      : orStuckPool(recorded, observations)
  },
})

export const poolProviderIDList = whenScaled('spec.providerIDList', (pool, replicas, recorded) => {
  const ids: unknown = read(recorded, 'InfraMachinePool', pool, InfraMachinePoolContract.providerIDList)
  const idList = list(ids)
  const holds =
    idList.length === replicas && new Set(idList).size === replicas && idList.every((id) => typeof id === 'string' && id !== '')
  return { expected: `${replicas} different strings`, found: ids, holds }
})

export const poolReplicas = whenScaled('status.replicas', (pool, replicas, recorded) => {
  const reported: unknown = read(recorded, 'InfraMachinePool', pool, InfraMachinePoolContract.replicas)
  return { expected: String(replicas), found: reported, holds: reported === replicas }
})

/** Returns observations for a scenario that stopped while it waited for the pool: the last state shows the missing fields. */
function poolStuck(recorded: ScenarioRecord): Observation[] {
  const stopped = recorded.marks.get('stopped')
  const pool = recorded.recording.histories(MachinePool)[0]?.states.at(-1)?.object
  if (stopped === undefined || pool?.spec.replicas === undefined) return []
  return statesAt(recorded, 'InfraMachinePool', 'stopped').flatMap(({ state: { object, at } }) => {
    const ids = list(read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.providerIDList))
    const replicas: unknown = read(recorded, 'InfraMachinePool', object, InfraMachinePoolContract.replicas)
    const holds = ids.length === pool.spec.replicas && replicas === pool.spec.replicas
    const expected = `${pool.spec.replicas} IDs and ${pool.spec.replicas} replicas, equal to spec.replicas of the MachinePool`
    const field = 'spec.providerIDList and status.replicas'
    return holds ? [] : [observation({ object, field, at, expected, found: { ids: ids.length, replicas }, holds })]
  })
}

const orStuckPool = (recorded: ScenarioRecord, observations: readonly Observation[]): LiveResult =>
  orStopped(recorded, 'ready', observations.length > 0 ? observations : poolStuck(recorded))

export const poolBothReady = whenReady(
  'InfraMachinePool',
  'status.initialization.provisioned and status.ready of each pool.',
  (object, at, recorded) => {
    if (contractVersionOf(recorded, 'InfraMachinePool') !== 'v1beta2') return []
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
  looksAt: 'Objects of the kind in status.infrastructureMachineKind with the labels of the pool: one for each replica.',
  scenario: 'life',
  contract: 'InfraMachinePool',
  run(recorded) {
    const states = statesAt(recorded, 'InfraMachinePool', 'pool scaled up')
    if (states.length === 0) return stoppedBefore(recorded, 'pool scaled up')
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
