import type { Cluster, ClusterClass } from '@capstan/api'
import { type FieldError, forbidden } from '@capstan/kube'

/** What a topology may not ask for yet: refused by name rather than left out without a word. */
export function unsupportedParts({ spec: { topology } }: Cluster, clusterClass: ClusterClass | undefined): FieldError[] {
  if (!topology) return []
  const errors: FieldError[] = []
  const path = 'spec.topology'
  if (topology.workers?.machinePools) errors.push(forbidden(`${path}.workers.machinePools`, 'MachinePools are not supported'))

  const ofClass = clusterClass?.spec
  const noHealthChecks = 'MachineHealthChecks are not supported; set enabled to false'
  const controlPlane = topology.controlPlane?.healthCheck
  if (isOn(controlPlane, ofClass?.controlPlane.healthCheck))
    errors.push(forbidden(`${path}.controlPlane.healthCheck`, noHealthChecks))
  for (const one of topology.workers?.machineDeployments ?? []) {
    const classCheck = ofClass?.workers?.machineDeployments?.find((candidate) => candidate.class === one.class)?.healthCheck
    if (isOn(one.healthCheck, classCheck))
      errors.push(forbidden(`${path}.workers.machineDeployments[${one.name}].healthCheck`, noHealthChecks))
  }
  return errors
}

const isOn = (ofTopology: { readonly enabled?: boolean } | undefined, ofClass: object | undefined): boolean =>
  (ofTopology !== undefined || ofClass !== undefined) && ofTopology?.enabled !== false
