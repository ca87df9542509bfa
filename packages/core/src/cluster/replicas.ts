/** How many Machines a Cluster has, and of which versions. Pure. */
import {
  availableReplicasOf,
  type Cluster,
  type ClusterReplicas,
  ControlPlaneContract,
  type Machine,
  type ReplicasOfVersion,
  statusVersionsOf,
} from '@capstan/api'
import { isTrue } from '@capstan/kube'
import { read } from '../external/observed.ts'
import { mergeVersions } from '../versions-in-use.ts'
import { isStandAlone } from './descendants.ts'
import type { ClusterScope } from './scope.ts'

/** The counters that this controller owns; the plan of an upgrade is the topology's. */
const counters = ['desiredReplicas', 'replicas', 'readyReplicas', 'availableReplicas', 'upToDateReplicas', 'versions'] as const
type Counts = { [Name in (typeof counters)[number]]?: NonNullable<ClusterReplicas[Name]> }

/** Writes `status.controlPlane` and `status.workers` on the draft. */
export function reportReplicas(scope: ClusterScope): void {
  const status = (scope.cluster.status ??= {})
  const controlPlane = controlPlaneCounts(scope)
  if (controlPlane) put(status, 'controlPlane', controlPlane)
  const workers = workerCounts(scope)
  if (workers) put(status, 'workers', workers)
}

function put(status: NonNullable<Cluster['status']>, part: 'controlPlane' | 'workers', counts: Counts): void {
  const { upgradePlan } = status[part] ?? {}
  const next = { ...counts, ...(upgradePlan ? { upgradePlan } : {}) }
  if (Object.keys(next).length > 0) status[part] = next
  else delete status[part]
}

/** `undefined` while nothing is known: what was counted before then stays. */
function controlPlaneCounts({ cluster, controlPlane, descendants }: ClusterScope): Counts | undefined {
  if (!cluster.spec.controlPlaneRef) {
    if (cluster.spec.topology) return {}
    return descendants && machineCounts(descendants.controlPlaneMachines)
  }
  switch (controlPlane.state) {
    case 'unread':
      return undefined
    case 'none':
    case 'missing':
      return {}
    case 'found':
  }
  const { external } = controlPlane
  const reported = defined({
    desiredReplicas: read(external, ControlPlaneContract.specReplicas),
    replicas: read(external, ControlPlaneContract.replicas),
    readyReplicas: read(external, ControlPlaneContract.readyReplicas),
    availableReplicas: availableReplicasOf(external.object, external.contract),
    upToDateReplicas: read(external, ControlPlaneContract.upToDateReplicas),
    versions: statusVersionsOf(external.object, external.contract),
  })
  const known: Counts = {}
  for (const name of counters) Object.assign(known, defined({ [name]: cluster.status?.controlPlane?.[name] }))
  return { ...known, ...reported }
}

function workerCounts({ cluster, descendants }: ClusterScope): Counts | undefined {
  if (!descendants) return undefined
  const ownedByCluster = isStandAlone(cluster)
  const sets = [...descendants.machineDeployments, ...descendants.machineSets.filter(ownedByCluster)]
  const parts: Counts[] = sets.map(({ spec, status }) =>
    defined({
      desiredReplicas: spec.replicas,
      replicas: status?.replicas,
      readyReplicas: status?.readyReplicas,
      availableReplicas: status?.availableReplicas,
      upToDateReplicas: status?.upToDateReplicas,
      versions: status?.versions,
    }),
  )
  const machines = descendants.workerMachines.filter(ownedByCluster)
  if (machines.length > 0) parts.push(machineCounts(machines))

  const total: Counts = {}
  for (const { versions: _, ...part } of parts) {
    for (const [name, count] of Object.entries(part)) total[name as 'replicas'] = (total[name as 'replicas'] ?? 0) + count
  }
  const versions = mergeVersions(parts.flatMap((part) => part.versions ?? []))
  return { ...total, ...(versions ? { versions } : {}) }
}

function machineCounts(machines: readonly Machine[]): Counts {
  const count = (condition: string) => machines.filter((machine) => isTrue(machine, condition)).length
  const versions = mergeVersions(machines.flatMap(versionOf))
  return {
    desiredReplicas: machines.length,
    replicas: machines.length,
    readyReplicas: count('Ready'),
    availableReplicas: count('Available'),
    upToDateReplicas: count('UpToDate'),
    ...(versions ? { versions } : {}),
  }
}

/** What the Node reports is what runs; before there is one, what is wanted stands for it. */
function versionOf({ spec, status }: Machine): ReplicasOfVersion[] {
  const version = status?.nodeInfo?.kubeletVersion || spec.version
  return version ? [{ version, replicas: 1 }] : []
}

/** Without the members that are `undefined`. */
const defined = <T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never
