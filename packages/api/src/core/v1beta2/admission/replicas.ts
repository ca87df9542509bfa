/** Defaults replicas. Upstream: core/webhooks/admission/machinedeployment.go, machineset.go and machinepool.go, v1.14. */
import { messageOf, parseGoInteger, StatusError } from '@capstan/kube'
import { AutoscalerMaxSizeAnnotation, AutoscalerMinSizeAnnotation } from '../../well-known.ts'

interface Scalable {
  kind: string
  metadata: { annotations?: { [key: string]: string } }
  spec: { replicas?: number }
}

/**
 * Returns the default of `spec.replicas`: 1, unless the object has the annotations of the cluster autoscaler for the minimum and maximum
 * size. With both annotations, the default is the old value, limited to this range; without an old value, the minimum.
 *
 * @throws StatusError Forbidden when the object has both annotations, and one is not a 32-bit integer
 */
export function defaultReplicas(object: Scalable, old: Scalable | undefined): number {
  const { annotations } = object.metadata
  const smallest = annotations?.[AutoscalerMinSizeAnnotation]
  const largest = annotations?.[AutoscalerMaxSizeAnnotation]
  if (smallest === undefined || largest === undefined) return 1
  const min = sizeOf(object.kind, AutoscalerMinSizeAnnotation, smallest)
  const max = sizeOf(object.kind, AutoscalerMaxSizeAnnotation, largest)
  const current = old?.spec.replicas
  if (current === undefined || current < min) return min
  return current > max ? max : current
}

function sizeOf(kind: string, annotation: string, text: string): number {
  try {
    return parseGoInteger(text, 'ParseInt', 32)
  } catch (cause) {
    // The spelling "caculate" is upstream's.
    const problem = `failed to caculate ${kind} replicas value: could not parse the value of the ${JSON.stringify(annotation)} annotation`
    throw new StatusError('Forbidden', `${problem}: ${messageOf(cause)}`)
  }
}
