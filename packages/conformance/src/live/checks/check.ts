/**
 * The interface of live checks, which check a running provider, and functions with which they read the record of a scenario. A mark is a
 * named moment of the scenario, such as `ready`.
 */
import {
  BootstrapConfigContract,
  type ContractField,
  type ContractVersion,
  ControlPlaneContract,
  InfraClusterContract,
  InfraMachineContract,
  InfraMachinePoolContract,
  isPoolProvisioned,
  readField,
} from '@capstan/api/contract'
import { isDeleting, type KubeObject, type UnknownObject, type Kind } from '@capstan/kube'
import type { ContractName } from '../../manifests.ts'
import type { ScenarioRecord } from '../bench.ts'
import { type History, type State, stateAt } from '../recording.ts'
import type { ScenarioName } from '../scenarios/index.ts'
import { type LiveResult, type Observation, observation } from '../verdict.ts'

export interface LiveCheck {
  /** Text for the reference page: the objects and fields that the check reads. */
  readonly looksAt: string
  /** The scenario whose record the check reads. */
  readonly scenario: ScenarioName
  /**
   * The contract of the checked kind; `IPAM`: a kind of address pools. Default: InfraCluster. The check is skipped if no such kind is under
   * test.
   */
  readonly contract?: ContractName | 'IPAM'
  run(recorded: ScenarioRecord): LiveResult
}

/** The fields that report completed initialization. */
export const initializedFields = {
  InfraCluster: InfraClusterContract.provisioned,
  InfraMachine: InfraMachineContract.provisioned,
  InfraMachinePool: InfraMachinePoolContract.provisioned,
  BootstrapConfig: BootstrapConfigContract.dataSecretCreated,
  ControlPlane: ControlPlaneContract.initialized,
} satisfies Record<ContractName, ContractField<boolean>>

/** Whether an object reports that initialization is completed. */
export function isInitialized(contract: ContractName, object: KubeObject, version: ContractVersion): boolean {
  try {
    return contract === 'InfraMachinePool'
      ? isPoolProvisioned(object, version)
      : readField(object, initializedFields[contract], version) === true
  } catch {
    return false
  }
}

/** Returns the histories of all objects of the kind under test; none if no kind of this contract is under test. */
export const historiesOf = ({ target, recording }: ScenarioRecord, contract: ContractName): readonly History[] => {
  const kindUnderTest = target[contract]
  return kindUnderTest ? recording.histories(kindUnderTest.kind) : []
}

/** Returns the contract version that core chooses for the kind under test. */
export const contractVersionOf = ({ target }: ScenarioRecord, contract: ContractName): ContractVersion =>
  target[contract]!.contractVersion

/** Returns the objects of a contract that existed at a mark and were not being deleted. */
export function statesAt(
  recorded: ScenarioRecord,
  contract: ContractName,
  mark: string,
): readonly { history: History; state: State }[] {
  const time = recorded.marks.get(mark)
  if (time === undefined) return []
  return historiesOf(recorded, contract).flatMap((history) => {
    const state = stateAt(history, time)
    return state && !isDeleting(state.object) ? [{ history, state }] : []
  })
}

/** Returns the objects of a kind that existed at a mark; none if the scenario did not reach it. */
export function objectsAt<T extends KubeObject>({ marks, recording }: ScenarioRecord, kind: Kind<T>, mark: string): State<T>[] {
  const time = marks.get(mark)
  return time === undefined ? [] : recording.histories(kind).flatMap((history) => stateAt<T>(history, time) ?? [])
}

/** Returns `mark`, or `stopped` if the scenario stopped after `precedingMark` but before `mark`. */
export const orWhenStopped = ({ marks }: ScenarioRecord, mark: string, precedingMark: string): string =>
  !marks.has(mark) && marks.has(precedingMark) ? 'stopped' : mark

/** Returns the result of a check without observations: the scenario stopped early, or it had no object to check. */
export const stoppedBefore = ({ stopped }: ScenarioRecord, step: string): LiveResult => ({
  notTestable: stopped === undefined ? `there was no object to check at the step "${step}"` : `the scenario stopped: ${stopped}`,
})

/** Returns the observations; if there are none, the reason. */
export const orStopped = (recorded: ScenarioRecord, step: string, observations: readonly Observation[]): LiveResult =>
  observations.length > 0 ? observations : stoppedBefore(recorded, step)

/**
 * Declares a check of each object that exists, and is not being deleted, at one of `marks`: by default, when the cluster of the scenario
 * `life` is ready, and after it was scaled.
 */
export const whenReady = (
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

/** Checks that an object has no finalizers. */
export const noFinalizers = ({ object, at }: State<KubeObject>): Observation => {
  const finalizers = object.metadata.finalizers ?? []
  return observation({
    object,
    field: 'metadata.finalizers',
    at,
    expected: 'none',
    found: finalizers,
    holds: finalizers.length === 0,
  })
}
