import { Cluster, ClusterClass, ClusterNameLabel, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { type Controller, type Index, type MapFunction, type Predicate, watches, whenChanged } from '@capstan/controller'
import {
  type ConditionSource,
  equal,
  getCondition,
  isDeleting,
  keyOf,
  keyText,
  type KubeObject,
  Secret,
  seconds,
} from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import { othersChange } from '../others-change.ts'
import { reconcileCluster } from './reconcile.ts'
import type { ClusterSettings } from './scope.ts'
import { OwnedConditions } from './status.ts'

export interface ClusterControllerOptions extends Partial<ClusterSettings> {
  readonly clusters: ClusterCache
  /** Clusters reconciled at once. */
  readonly concurrency?: number
}

/** Reconciles Clusters: see README.md for what is watched and why. */
export function createClusterController({
  clusters,
  concurrency = 10,
  remoteConnectionGracePeriod = seconds(50),
}: ClusterControllerOptions): Controller<Cluster> {
  const settings: ClusterSettings = { remoteConnectionGracePeriod }
  return {
    name: 'cluster',
    for: Cluster,
    when: othersChange(OwnedConditions),
    watches: [
      watches(Machine, clusterOfLabel, machineMatters),
      watches(MachineSet, clusterOfLabel, setMatters),
      watches(MachineDeployment, clusterOfLabel, setMatters),
      watches(
        ClusterClass,
        (clusterClass, cache) => cache.byIndex(byClass, keyText(keyOf(clusterClass))).map(keyOf),
        gatesMatter,
      ),
      watches(Secret, clusterOfAuthority, ({ object }) => object?.metadata.name.endsWith(AuthoritySuffix) ?? false),
    ],
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

const clusterOfLabel: MapFunction = ({ metadata }: KubeObject) => {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined ? [] : [{ namespace: metadata.namespace!, name }]
}

/** What a Cluster tells of its Machines. */
const machineMatters = whenChanged((machine: Machine) => ({
  labels: machine.metadata.labels,
  owners: machine.metadata.ownerReferences,
  isDeleting: isDeleting(machine),
  hasNode: machine.status?.nodeRef !== undefined,
  version: machine.status?.nodeInfo?.kubeletVersion ?? machine.spec.version,
  conditions: conditionFacts(machine, ['Ready', 'Available', 'UpToDate', 'HealthCheckSucceeded', 'OwnerRemediated']),
}))

/** What a Cluster tells of its MachineDeployments and MachineSets. */
const setMatters = whenChanged((set: MachineDeployment | MachineSet) => {
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

const gatesMatter: Predicate<ClusterClass> = ({ previous, object }) =>
  !equal(previous?.spec.availabilityGates, object?.spec.availabilityGates)

/** Clusters by their class. */
const byClass: Index<Cluster> = {
  name: 'cluster by class',
  kind: Cluster,
  values({ metadata, spec }) {
    if (!spec.topology) return []
    const { name, namespace = metadata.namespace! } = spec.topology.classRef
    return [keyText({ namespace, name })]
  },
}

const AuthoritySuffix = '-ca'

/** A Cluster without control plane provider waits for its certificate authority. */
const clusterOfAuthority: MapFunction = ({ metadata }: KubeObject) => [
  { namespace: metadata.namespace!, name: metadata.name.slice(0, -AuthoritySuffix.length) },
]
