/** Computes the replica counts and versions of a Cluster's control plane and workers. Pure, except for the draft that it changes. */
import {
  availableReplicasOf,
  type Cluster,
  type ClusterReplicas,
  type ContractField,
  ControlPlaneContract,
  type Machine,
  type ReplicasOfVersion,
  statusVersionsOf,
} from '@capstan/api'
import { isTrue } from '@capstan/kube'
import { read } from '../external/observed.ts'
import { mergeVersions, versionsOfMachines } from '../versions-in-use.ts'
import { isStandAlone, withoutPoolMachines } from './descendants.ts'
import type { ClusterScope } from './scope.ts'

/** Fields of the counts, which this controller owns. The field `upgradePlan` beside them belongs to the topology controller. */
const counters = ['desiredReplicas', 'replicas', 'readyReplicas', 'availableReplicas', 'upToDateReplicas', 'versions'] as const
type Counts = { [Name in (typeof counters)[number]]?: NonNullable<ClusterReplicas[Name]> }

/** Writes `status.controlPlane` and `status.workers` on the draft. */
export function reportReplicas(scope: ClusterScope): void {
  const status = (scope.cluster.status ??= {})
  putCounts(status, 'controlPlane', controlPlaneCounts(scope) ?? { ...status.controlPlane })
  putCounts(status, 'workers', workerCounts(scope) ?? { ...status.workers })
}

function putCounts(status: NonNullable<Cluster['status']>, field: 'controlPlane' | 'workers', counts: Counts): void {
  const { upgradePlan } = status[field] ?? {}
  const replicas = { ...counts, ...(upgradePlan ? { upgradePlan } : {}) }
  // As upstream, the field is present even when it has no counts.
  status[field] = replicas
}

/**
 * Returns the counts of the control plane: those that the control plane object reports or, in a Cluster that has neither such an object nor a
 * topology, those of the Machines. A count that the object does not report keeps its earlier value; versions that it does not
 * report are removed. As upstream, there are no counts when the object does not exist or could not be read. Returns `undefined` when the
 * Machines could not be listed; the draft then keeps its earlier counts.
 */
function controlPlaneCounts({ cluster, controlPlane, descendants }: ClusterScope): Counts | undefined {
  if (!cluster.spec.controlPlaneRef) {
    if (cluster.spec.topology) return {}
    return descendants && machineCounts(descendants.controlPlaneMachines)
  }
  if (controlPlane.state !== 'found') return {}
  const { external } = controlPlane
  const { specReplicas, replicas, readyReplicas, upToDateReplicas } = ControlPlaneContract
  const count = (field: ContractField<number>) => validOrAbsent(isCount, () => read(external, field))
  const reported = withoutUndefined({
    desiredReplicas: count(specReplicas),
    replicas: count(replicas),
    readyReplicas: count(readyReplicas),
    availableReplicas: validOrAbsent(isCount, () => availableReplicasOf(external.object, external.contract)),
    upToDateReplicas: count(upToDateReplicas),
    versions: validOrAbsent(areVersions, () => statusVersionsOf(external.object, external.contract) ?? []),
  })
  const currentCounts: Counts = {}
  for (const name of counters) Object.assign(currentCounts, withoutUndefined({ [name]: cluster.status?.controlPlane?.[name] }))
  const counts: Counts = { ...currentCounts, ...reported }
  // As upstream, earlier versions stay only while the reported ones are invalid.
  if (counts.versions?.length === 0) delete counts.versions
  return counts
}

/**
 * Returns a value of the control plane; `undefined` for an invalid value, since the API server would reject the whole status with it.
 * Upstream: setControlPlaneReplicas ignores errors.
 */
function validOrAbsent<T>(isValid: (value: T) => boolean, readValue: () => T | undefined): T | undefined {
  try {
    const value = readValue()
    return value !== undefined && isValid(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Whether a value is an int32, the type of counts in the API. */
const isCount = (value: unknown): boolean => typeof value === 'number' && value === (value | 0)

/** Limit of `Cluster.status.controlPlane.versions`. */
const maxVersions = 32

const areVersions = (versions: readonly ReplicasOfVersion[]): boolean =>
  versions.length <= maxVersions &&
  versions.every(
    ({ version, replicas }) => typeof version === 'string' && version !== '' && (replicas === undefined || isCount(replicas)),
  )

function workerCounts({ cluster, descendants }: ClusterScope): Counts | undefined {
  if (!descendants) return undefined
  const ownedByCluster = isStandAlone(cluster)
  const workers = [
    ...descendants.machinePools,
    ...descendants.machineDeployments,
    ...descendants.machineSets.filter(ownedByCluster),
  ]
  const countsPerObject: Counts[] = workers.map(({ spec, status }) =>
    withoutUndefined({
      desiredReplicas: spec.replicas,
      replicas: status?.replicas,
      readyReplicas: status?.readyReplicas,
      availableReplicas: status?.availableReplicas,
      upToDateReplicas: status?.upToDateReplicas,
      versions: status?.versions,
    }),
  )
  const machines = withoutPoolMachines(descendants.workerMachines).filter(ownedByCluster)
  if (machines.length > 0) countsPerObject.push(machineCounts(machines))

  const total: Counts = {}
  for (const { versions: _, ...counts } of countsPerObject) {
    for (const [name, count] of Object.entries(counts)) total[name as 'replicas'] = (total[name as 'replicas'] ?? 0) + count
  }
  const versions = mergeVersions(countsPerObject.flatMap((counts) => counts.versions ?? []))
  return { ...total, ...(versions ? { versions } : {}) }
}

function machineCounts(machines: readonly Machine[]): Counts {
  // As upstream, a count of 0 is absent.
  const count = (condition: string) => machines.filter((machine) => isTrue(machine, condition)).length || undefined
  const versions = versionsOfMachines(machines)
  return withoutUndefined({
    desiredReplicas: machines.length || undefined,
    replicas: machines.length || undefined,
    readyReplicas: count('Ready'),
    availableReplicas: count('Available'),
    upToDateReplicas: count('UpToDate'),
    versions,
  })
}

/** Drops members that are `undefined`. */
const withoutUndefined = <T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never
