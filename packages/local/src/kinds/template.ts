import { TopologyDryRunAnnotation } from '@capstan/api'
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { equal, invalid } from '@capstan/kube'

interface TemplateObject extends KubeObject {
  spec: { template: { spec: unknown } }
}

/**
 * Returns a `validate` function that rejects changes of `spec.template.spec`, except in dry runs of the topology controller. A
 * rollout starts when an object refers to another template, not when the content of a template changes: a change requires a new template.
 */
export const immutableTemplate =
  (kind: string) =>
  (object: TemplateObject, { oldObject, dryRun }: AdmissionContext<TemplateObject>): FieldError[] => {
    if (oldObject === undefined || equal(object.spec.template.spec, oldObject.spec.template.spec)) return []
    if (dryRun && object.metadata.annotations?.[TopologyDryRunAnnotation] !== undefined) return []
    const detail = `${kind} spec.template.spec field is immutable. Please create new resource instead.`
    return [invalid('spec.template.spec', object.spec.template.spec, detail)]
  }
