import type { ClusterClassSpec } from '@capstan/api'
import type { TemplateRef } from '../external/get.ts'

/**
 * Returns the template references of a class, without duplicates, in the order of the spec. Omits references to remediation templates.
 * Upstream: reconcileExternalReferences.
 */
export function templateRefsOf({ infrastructure, controlPlane, workers }: ClusterClassSpec): TemplateRef[] {
  const refs = [
    infrastructure.templateRef,
    controlPlane.templateRef,
    controlPlane.machineInfrastructure?.templateRef,
    ...(workers?.machineDeployments ?? []).flatMap((workerClass) => [
      workerClass.bootstrap.templateRef,
      workerClass.infrastructure.templateRef,
    ]),
    ...(workers?.machinePools ?? []).flatMap((workerClass) => [
      workerClass.bootstrap.templateRef,
      workerClass.infrastructure.templateRef,
    ]),
  ]
  const distinct = new Map<string, TemplateRef>()
  for (const ref of refs) if (ref) distinct.set(`${ref.apiVersion} ${ref.kind} ${ref.name}`, ref)
  return [...distinct.values()]
}
