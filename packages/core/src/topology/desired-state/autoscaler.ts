/** Validates that a topology sets no replicas of MachineDeployments that an autoscaler scales. Pure. */
import { AutoscalerMaxSizeAnnotation, AutoscalerMinSizeAnnotation, type Cluster, type ClusterClass } from '@capstan/api'
import { type FieldError, invalid } from '@capstan/kube'

/** Returns an error for each MachineDeployment that sets replicas although its class has an autoscaler annotation. */
export function autoscalerErrors({ metadata, spec: { topology } }: Cluster, { workers }: ClusterClass['spec']): FieldError[] {
  return (topology?.workers?.machineDeployments ?? []).flatMap(({ name, class: className, replicas }) => {
    const annotations = workers?.machineDeployments?.find((candidate) => candidate.class === className)?.metadata?.annotations
    const isAutoscaled = [AutoscalerMinSizeAnnotation, AutoscalerMaxSizeAnnotation].some(
      (key) => annotations?.[key] !== undefined,
    )
    if (replicas === undefined || !isAutoscaled) return []
    const cluster = `cluster ${JSON.stringify(metadata.name)} in namespace ${JSON.stringify(metadata.namespace)}`
    const reason = `if the source class ${JSON.stringify(className)} of this MachineDeploymentTopology has autoscaler annotations`
    return [
      invalid(`spec.topology.workers.machineDeployments[${name}].replicas`, replicas, `cannot be set for ${cluster} ${reason}`),
    ]
  })
}
