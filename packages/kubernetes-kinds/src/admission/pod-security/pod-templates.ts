/**
 * Pod templates of workloads, and changes of a pod's containers. Upstream: DefaultPodSpecExtractor and isSignificantPodUpdate of
 * k8s.io/pod-security-admission/admission, v0.36.
 */
import type { CronJob, Pod, PodTemplate, PodTemplateSpec } from '../../kinds/schemas/types.ts'
import type { PodLike } from './check.ts'

const inSpec = (object: unknown): PodTemplateSpec | undefined =>
  (object as { spec: { template?: PodTemplateSpec } }).spec.template

/** Functions that return the template of an object, by storage name. The template of a ReplicationController is optional. */
export const podTemplates: ReadonlyMap<string, (object: unknown) => PodLike | undefined> = new Map([
  ['podtemplates', (object: unknown) => (object as PodTemplate).template],
  ['replicationcontrollers', inSpec],
  ['replicasets.apps', inSpec],
  ['deployments.apps', inSpec],
  ['statefulsets.apps', inSpec],
  ['daemonsets.apps', inSpec],
  ['jobs.batch', inSpec],
  ['cronjobs.batch', (object: unknown) => (object as CronJob).spec.jobTemplate.spec.template],
])

/**
 * Reports whether an update changes the number or the images of a pod's containers. Only such updates are checked against the policy of
 * the namespace.
 */
export function changesContainers({ spec }: Pod, { spec: old }: Pod): boolean {
  const lists = [
    [spec.containers, old.containers],
    [spec.initContainers, old.initContainers],
  ] as const
  for (const [now = [], then = []] of lists) {
    if (now.length !== then.length || now.some(({ image }, index) => image !== then[index]!.image)) return true
  }
  const imagesBefore = new Map(old.ephemeralContainers?.map(({ name, image }) => [name, image]))
  return (spec.ephemeralContainers ?? []).some(({ name, image }) => imagesBefore.get(name) !== image)
}
