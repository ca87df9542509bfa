/** Live checks of the contract ControlPlane. They read the record of the scenario `life`; a mark is a named moment in it, such as `ready`. */
import { Cluster, ClusterNameLabel, Machine, MachineControlPlaneLabel } from '@capstan/api'
import { ControlPlaneContract, isValidEndpoint } from '@capstan/api/contract'
import { Secret, type UnknownObject } from '@capstan/kube'
import { record } from '../../manifests.ts'
import type { ScenarioRecord } from '../bench.ts'
import { hasReplicas, hasVersion, read } from '../read.ts'
import type { State } from '../recording.ts'
import { PropagatedLabel } from '../scenarios/life.ts'
import { type LiveResult, type Observation, observation } from '../verdict.ts'
import {
  historiesOf,
  type LiveCheck,
  orStopped,
  orWhenStopped,
  statesAt,
  stoppedBefore,
  contractVersionOf,
  objectsAt,
} from './check.ts'

/**
 * Declares a check of the control plane at a mark. For a mark after `ready`, the check uses the last state if the scenario stopped
 * while the control plane scaled.
 */
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
  'Replicas, up-to-date replicas and the selector in the status, after scaling to 3.',
  (object, at, recorded) => {
    if (!hasReplicas(recorded)) return noReplicas
    const version = contractVersionOf(recorded, 'ControlPlane')
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
  looksAt: 'The response to a GET of the scale subresource.',
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasReplicas(recorded)) return noReplicas
    const response = recorded.requestResults.get('scale')
    if (!response) return stoppedBefore(recorded, 'ready')
    const { object, at, error } = response
    const expected = 'spec.replicas and status.selector'
    return [observation({ object, field: 'scale', at, expected, found: error ?? 'both', holds: error === undefined })]
  },
}

export const controlPlaneVersion: LiveCheck = {
  looksAt: 'status.versions or status.version when ready, during an upgrade (the old version first), and after it.',
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

/** Returns the Machines of the control plane at a mark. */
function machinesAt(recorded: ScenarioRecord, mark: string): readonly State<Machine>[] {
  return objectsAt(recorded, Machine, mark).filter(({ object: { metadata } }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller)
    return owner !== undefined && owner.kind === recorded.target.ControlPlane?.kind.kind
  })
}

/**
 * Declares a check of the Machines that a control plane owns. `observe` returns at least one observation for each Machine; only that of
 * `controlPlanePlacement` returns none if the Cluster has fewer than two failure domains for control planes.
 */
const machinesCheck = (
  looksAt: string,
  mark: string,
  observe: (
    machine: Machine,
    at: number,
    recorded: ScenarioRecord,
    machines: readonly State<Machine>[],
  ) => readonly Observation[],
): LiveCheck => ({
  looksAt,
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasReplicas(recorded)) return noReplicas
    const machines = machinesAt(recorded, mark)
    const observed = machines.flatMap(({ object, at }) => observe(object, at, recorded, machines))
    if (machines.length > 0 && observed.length === 0)
      return { notApplicable: 'the Cluster has fewer than two failure domains for control planes' }
    return orStopped(recorded, mark, observed)
  },
})

export const controlPlaneMachineLabel = machinesCheck(
  'The label cluster.x-k8s.io/control-plane of each control plane Machine.',
  'initialized',
  (object, at) => {
    const value = object.metadata.labels?.[MachineControlPlaneLabel]
    const field = `metadata.labels[${MachineControlPlaneLabel}]`
    return [observation({ object, field, at, expected: 'an empty value', found: value, holds: value === '' })]
  },
)

export const controlPlaneMachinesUpToDate = machinesCheck(
  'The condition UpToDate of each control plane Machine.',
  'ready',
  (object, at) => {
    const condition = object.status?.conditions?.find(({ type }) => type === 'UpToDate')
    const holds = condition?.status === 'True'
    return [observation({ object, field: 'status.conditions[UpToDate]', at, expected: 'True', found: condition?.status, holds })]
  },
)

export const controlPlanePlacement = machinesCheck(
  'spec.failureDomain of the three control plane Machines, when the Cluster has at least two failure domains for control planes.',
  'scaled',
  (object, at, recorded, machines) => {
    const cluster = recorded.recording.histories(Cluster)[0]?.states.findLast((state) => state.at <= at)?.object
    const domains = (cluster?.status?.failureDomains ?? []).filter(({ controlPlane }) => controlPlane).map(({ name }) => name)
    if (domains.length < 2) return []
    const used = new Set(machines.map((one) => one.object.spec.failureDomain))
    const { failureDomain } = object.spec
    const expected = `one of ${domains.join(', ')}, spread over ${Math.min(domains.length, machines.length)} of them`
    const holds =
      failureDomain !== undefined && domains.includes(failureDomain) && used.size === Math.min(domains.length, machines.length)
    return [observation({ object, field: 'spec.failureDomain', at, expected, found: failureDomain, holds })]
  },
)

export const controlPlaneMetadata: LiveCheck = {
  looksAt: 'Control plane Machines before and after a label is added to spec.machineTemplate.metadata.',
  scenario: 'life',
  contract: 'ControlPlane',
  run(recorded) {
    if (!hasReplicas(recorded)) return noReplicas
    const machinesBefore = machinesAt(recorded, 'metadata changes')
    const machinesAfter = machinesAt(recorded, 'metadata changed')
    const observations = machinesAfter.flatMap(({ object, at }) => [
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
        expected: 'a Machine that existed before the change',
        found: object.metadata.uid,
        holds: machinesBefore.some((one) => one.object.metadata.uid === object.metadata.uid),
      }),
    ])
    return orStopped(recorded, 'change of metadata', observations)
  },
}

/** Checks the Secret `life-<name>` of the Cluster for each of `names`. */
const clusterSecrets = (recorded: ScenarioRecord, names: readonly string[]): LiveResult => {
  const mark = orWhenStopped(recorded, 'ready', 'infrastructure provisioned')
  const [controlPlane] = statesAt(recorded, 'ControlPlane', mark)
  if (!controlPlane) return stoppedBefore(recorded, 'ready')
  const secrets = objectsAt(recorded, Secret, mark)
  return names.flatMap((name) => {
    const secret = secrets.find(({ object: { metadata } }) => metadata.name === `life-${name}`)
    if (!secret) {
      const { object, at } = controlPlane.state
      const expected = `a Secret life-${name}`
      return [observation({ object, field: 'Secrets', at, expected, found: undefined, holds: false })]
    }
    const { object, at } = secret
    const compare = (field: string, expected: string, found: unknown, holds: boolean) =>
      observation({ object, field, at, expected, found, holds })
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
  looksAt:
    'The Secret <cluster>-kubeconfig: its type, its label cluster.x-k8s.io/cluster-name and its key "value". Its content is not printed.',
  scenario: 'life',
  contract: 'ControlPlane',
  run: (recorded) => clusterSecrets(recorded, ['kubeconfig']),
}

export const controlPlaneCertificates: LiveCheck = {
  looksAt: 'The Secret <cluster>-ca: its type and its label cluster.x-k8s.io/cluster-name.',
  scenario: 'life',
  contract: 'ControlPlane',
  run: (recorded) => clusterSecrets(recorded, ['ca']),
}
