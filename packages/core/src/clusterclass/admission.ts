/**
 * Admission rules of ClusterClasses that the schema cannot express: variables, patches, naming templates, and the Clusters that use the
 * class. Upstream: core/webhooks/admission/clusterclass.go and patch_validation.go, v1.14.
 */
import { Cluster, ClusterClass } from '@capstan/api'
import {
  type Admission,
  admission,
  type FieldError,
  forbidden,
  invalid,
  keyOf,
  keyText,
  type Reader,
  StatusError,
  subdomainProblems,
  shortList,
} from '@capstan/kube'
import { nameFromTemplate } from '../naming/generated-name.ts'
import { classKeyOf } from '../indexes.ts'
import { autoscalerErrors } from '../topology/desired-state/autoscaler.ts'
import { isDefined } from '../topology/desired-state/health-checks.ts'
import { stableRandom } from '../topology/stable-random.ts'
import { patchErrors } from './patch-rules.ts'
import { variableDefinitionErrors } from './variable-rules.ts'

export const clusterClassAdmission: Admission = admission<ClusterClass>({
  kind: ClusterClass,
  operations: ['CREATE', 'UPDATE', 'DELETE'],

  async validate(clusterClass, { operation, oldObject, reader }) {
    if (operation === 'DELETE') {
      const clusters = await clustersOf(clusterClass, reader)
      if (clusters.length > 0) throw inUseError(clusterClass, clusters)
      return []
    }
    return [
      ...namingErrors(clusterClass),
      ...variableDefinitionErrors(clusterClass.spec.variables ?? []),
      ...patchErrors(clusterClass.spec),
      ...(oldObject ? inUseErrors(clusterClass, oldObject, await clustersOf(clusterClass, reader)) : []),
    ]
  },
})

async function clustersOf(clusterClass: ClusterClass, reader: Reader): Promise<Cluster[]> {
  const { items } = await reader.list(Cluster)
  const key = keyText(keyOf(clusterClass))
  return items.filter((cluster) => cluster.spec.topology && keyText(classKeyOf(cluster)) === key)
}

function inUseError({ metadata }: ClusterClass, clusters: readonly Cluster[]): StatusError {
  const names = clusters.map((cluster) => keyText(keyOf(cluster))).sort()
  const reason = `ClusterClass cannot be deleted because it is used by Cluster(s): ${shortList(names, 3)}`
  return new StatusError('Forbidden', `ClusterClass.cluster.x-k8s.io "${metadata.name}" is forbidden: ${reason}`, {
    details: { name: metadata.name, group: 'cluster.x-k8s.io', kind: 'ClusterClass' },
  })
}

/** Renders the naming templates with sample values. Returns errors for templates that fail, and for results that are not valid names. */
function namingErrors({ spec }: ClusterClass): FieldError[] {
  const cluster = { name: 'cluster' }
  const errorsOf = (kind: string, path: string, template: string | undefined, data: Record<string, Record<string, string>>) => {
    if (template === undefined) return []
    const rejected = (problem: string) => [invalid(`${path}.naming.template`, template, problem)]
    try {
      const name = nameFromTemplate(template, data, stableRandom(path))
      const problems = subdomainProblems(name)
      return problems.flatMap(rejected)
    } catch (err) {
      return rejected(`invalid ${kind} name template: ${(err as Error).message}`)
    }
  }
  return [
    ...errorsOf('InfraCluster', 'spec.infrastructure', spec.infrastructure.naming?.template, { cluster }),
    ...errorsOf('ControlPlane', 'spec.controlPlane', spec.controlPlane.naming?.template, { cluster }),
    ...(spec.workers?.machineDeployments ?? []).flatMap((workerClass) =>
      errorsOf('MachineDeployment', `spec.workers.machineDeployments[${workerClass.class}]`, workerClass.naming?.template, {
        cluster,
        machineDeployment: { topologyName: 'mdtopology' },
      }),
    ),
    ...(spec.workers?.machinePools ?? []).flatMap((workerClass) =>
      errorsOf('MachinePool', `spec.workers.machinePools[${workerClass.class}]`, workerClass.naming?.template, {
        cluster,
        machinePool: { topologyName: 'mptopology' },
      }),
    ),
  ]
}

type ClassSpec = ClusterClass['spec']

/** Returns errors for changes of a class that its Clusters do not permit. */
const inUseErrors = ({ spec }: ClusterClass, { spec: old }: ClusterClass, clusters: readonly Cluster[]): FieldError[] => [
  ...versionErrors(spec, clusters),
  ...removedClassErrors('machineDeployments', 'MachineDeploymentClass', spec, old, clusters),
  ...removedClassErrors('machinePools', 'MachinePoolClass', spec, old, clusters),
  ...removedHealthCheckErrors(spec, old, clusters),
  ...clusters.flatMap((cluster) => autoscalerErrors(cluster, spec)),
]

/** Returns errors for versions of Clusters that the class does not list; none if the class lists no versions. */
const versionErrors = ({ kubernetesVersions }: ClassSpec, clusters: readonly Cluster[]): FieldError[] =>
  clusters.flatMap(({ metadata, spec: { topology } }) =>
    !kubernetesVersions || kubernetesVersions.includes(topology!.version)
      ? []
      : [
          forbidden(
            'spec.kubernetesVersions',
            `Kubernetes Version ${topology!.version} is used by Cluster "${metadata.name}" but not set in ClusterClass`,
          ),
        ],
  )

/** Returns an error for each MachineDeployment or MachinePool of a topology whose class an update removes. */
function removedClassErrors(
  list: 'machineDeployments' | 'machinePools',
  className: string,
  { workers }: ClassSpec,
  { workers: old }: ClassSpec,
  clusters: readonly Cluster[],
): FieldError[] {
  const remaining = new Set(workers?.[list]?.map((workerClass) => workerClass.class))
  const removed = new Set(old?.[list]?.map((workerClass) => workerClass.class).filter((name) => !remaining.has(name)))
  return clusters.flatMap(({ metadata, spec: { topology } }) =>
    (topology!.workers?.[list] ?? [])
      .filter((worker) => removed.has(worker.class))
      .map((worker) =>
        forbidden(
          `spec.workers.${list}`,
          `${className} "${worker.class}" cannot be deleted because it is used by Cluster "${metadata.name}"`,
        ),
      ),
  )
}

/** Returns errors for removed health checks that Clusters use: these Clusters enable a health check and define none of their own. */
function removedHealthCheckErrors(spec: ClassSpec, old: ClassSpec, clusters: readonly Cluster[]): FieldError[] {
  const errorsOf = (
    path: string,
    healthCheck: HealthCheck,
    oldHealthCheck: HealthCheck,
    uses: (topology: NonNullable<Cluster['spec']['topology']>) => readonly TopologyHealthCheck[],
  ): FieldError[] => {
    if (!isDefined(oldHealthCheck) || isDefined(healthCheck)) return []
    const names = clusters
      .filter(({ spec: { topology } }) => uses(topology!).some((check) => check?.enabled === true && !isDefined(check)))
      .map(({ metadata }) => metadata.name)
    if (names.length === 0) return []
    return [forbidden(path, `healthCheck cannot be deleted because it is used by Cluster(s) ${JSON.stringify(names.join(','))}`)]
  }
  return [
    ...errorsOf(
      'spec.controlPlane.healthCheck',
      spec.controlPlane.healthCheck,
      old.controlPlane.healthCheck,
      ({ controlPlane }) => [controlPlane?.healthCheck],
    ),
    ...(spec.workers?.machineDeployments ?? []).flatMap((workerClass) => {
      const { healthCheck } = old.workers?.machineDeployments?.find((other) => other.class === workerClass.class) ?? {}
      const path = `spec.workers.machineDeployments[${workerClass.class}].healthCheck`
      return errorsOf(path, workerClass.healthCheck, healthCheck, ({ workers }) =>
        (workers?.machineDeployments ?? [])
          .filter((worker) => worker.class === workerClass.class)
          .map((worker) => worker.healthCheck),
      )
    }),
  ]
}

type HealthCheck = Parameters<typeof isDefined>[0]
type TopologyHealthCheck = (NonNullable<HealthCheck> & { readonly enabled?: boolean }) | undefined
