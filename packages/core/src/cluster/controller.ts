import { Cluster, ClusterClass, Machine, MachineDeployment, MachinePool, MachineSet } from '@capstan/api'
import { type Controller, type MapFunction, type Predicate, watches, whenChanged } from '@capstan/controller'
import { type ConditionSource, equal, getCondition, isDeleting, type KubeObject, Secret, seconds } from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import { changedByOthers } from '../changed-by-others.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { clusterOfLabel, clustersOfClass } from '../indexes.ts'
import { reconcileCluster } from './reconcile.ts'
import type { ClusterSettings } from './scope.ts'
import { OwnedConditions } from './status.ts'

export interface ClusterControllerOptions extends Partial<ClusterSettings> {
  readonly clusters: ClusterCache
  /** Maximum number of Clusters reconciled concurrently. Default: 10. */
  readonly concurrency?: number
}

/** Creates the controller of Clusters. README.md in this folder lists the watched kinds. */
export function createClusterController({
  clusters,
  concurrency = 10,
  remoteConnectionGracePeriod = seconds(50),
  gates = {},
}: ClusterControllerOptions): Controller<Cluster> {
  const settings: ClusterSettings = { remoteConnectionGracePeriod, gates }
  return {
    name: 'cluster',
    for: Cluster,
    when: changedByOthers(OwnedConditions, OwnedLegacyConditions),
    watches: [
      watches(Machine, clusterOfLabel, machineMatters),
      watches(MachineSet, clusterOfLabel, setMatters),
      watches(MachineDeployment, clusterOfLabel, setMatters),
      ...(gates.MachinePool === false ? [] : [watches(MachinePool, clusterOfLabel, setMatters)]),
      watches(ClusterClass, (clusterClass, cache) => clustersOfClass(cache, clusterClass), changesAvailabilityGates),
      // Users create the Secrets of certificate authorities without the label that `--watch-filter` may require, so the filter applies only to
      // the Clusters. Upstream reads these Secrets without a watch.
      {
        ...watches(Secret, clusterOfAuthority, ({ object }) => object?.metadata.name.endsWith(AuthoritySuffix) ?? false),
        filter: 'keys',
      },
    ],
    aggregates: [Machine, MachineSet, MachineDeployment, MachinePool],
    sources: [
      clusters.source({
        map: (event) => (event.kind === 'node' ? [] : [event.cluster]),
        unreachableAfter: remoteConnectionGracePeriod,
      }),
    ],
    concurrency,
    reconcile: (key, context) => reconcileCluster(key, { ...context, clusters, settings }),
  }
}

/** Accepts new and deleted Machines, and changes of fields on which the status of a Cluster depends. */
const machineMatters = whenChanged((machine: Machine) => ({
  labels: machine.metadata.labels,
  owners: machine.metadata.ownerReferences,
  isDeleting: isDeleting(machine),
  hasNode: machine.status?.nodeRef !== undefined,
  version: machine.status?.nodeInfo?.kubeletVersion ?? machine.spec.version,
  conditions: conditionFacts(machine, ['Ready', 'Available', 'UpToDate', 'HealthCheckSucceeded', 'OwnerRemediated']),
}))

/** Accepts new and deleted MachineDeployments, MachineSets and MachinePools, and changes of fields on which the status of a Cluster depends. */
const setMatters = whenChanged((set: MachineDeployment | MachineSet | MachinePool) => {
  const { replicas, readyReplicas, availableReplicas, upToDateReplicas, versions } = set.status ?? {}
  return {
    labels: set.metadata.labels,
    owners: set.metadata.ownerReferences,
    isDeleting: isDeleting(set),
    desired: set.spec.replicas,
    counters: { replicas, readyReplicas, availableReplicas, upToDateReplicas, versions },
    conditions: conditionFacts(set, ['Available', 'RollingOut', 'ScalingUp', 'ScalingDown']),
  }
})

const conditionFacts = (object: ConditionSource, types: readonly string[]) =>
  types.map((type) => {
    const condition = getCondition(object, type)
    return condition && [condition.status, condition.message]
  })

const changesAvailabilityGates: Predicate<ClusterClass> = ({ previous, object }) =>
  !equal(previous?.spec.availabilityGates, object?.spec.availabilityGates)

const AuthoritySuffix = '-ca'

/**
 * Maps the Secret of a certificate authority to its Cluster: a Cluster with neither a control plane provider nor a topology waits for this
 * Secret.
 */
const clusterOfAuthority: MapFunction = ({ metadata }: KubeObject) => [
  { namespace: metadata.namespace!, name: metadata.name.slice(0, -AuthoritySuffix.length) },
]
