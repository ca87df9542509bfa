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
    details: { name: metadata.name, group: 'cluster.x-k8s.io', kind: 'clusterclasses' },
  })
}

/** Renders the naming templates with sample values. Returns an error for each result that is not a valid object name. */
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

/** Returns errors for MachineDeployment classes that an update removes, and Kubernetes versions that it does not list, but Clusters use. */
function inUseErrors({ spec }: ClusterClass, { spec: old }: ClusterClass, clusters: readonly Cluster[]): FieldError[] {
  const remainingClasses = new Set((spec.workers?.machineDeployments ?? []).map((workerClass) => workerClass.class))
  const removedClasses = (old.workers?.machineDeployments ?? [])
    .map((workerClass) => workerClass.class)
    .filter((name) => !remainingClasses.has(name))
  return clusters.flatMap(({ metadata, spec: { topology } }) => {
    const usedClasses = new Set((topology?.workers?.machineDeployments ?? []).map((workerClass) => workerClass.class))
    const version = topology?.version
    const isVersionRemoved =
      version !== undefined && spec.kubernetesVersions !== undefined && !spec.kubernetesVersions.includes(version)
    return [
      ...removedClasses
        .filter((name) => usedClasses.has(name))
        .map((name) =>
          forbidden(
            'spec.workers.machineDeployments',
            `MachineDeploymentClass "${name}" cannot be deleted because it is used by Cluster "${metadata.name}"`,
          ),
        ),
      ...(isVersionRemoved
        ? [
            forbidden(
              'spec.kubernetesVersions',
              `Kubernetes Version ${version} is used by Cluster "${metadata.name}" but not set in ClusterClass`,
            ),
          ]
        : []),
    ]
  })
}
