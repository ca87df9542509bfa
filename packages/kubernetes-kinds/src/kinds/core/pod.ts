import { timestamp } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { at, field } from '../columns.ts'
import {
  validateEphemeralContainersUpdate,
  validatePodCreate,
  validatePodResize,
  validatePodStatus,
  validatePodUpdate,
} from '../pod/changes.ts'
import { adoptAppArmorAnnotations } from '../pod/annotations.ts'
import { podColumns } from '../pod/columns.ts'
import { defaultPod, defaultPodTemplate } from '../pod/defaults.ts'
import { qosClass } from '../pod/resources.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import { podWarnings, templateWarnings } from '../pod/warnings.ts'
import { column, containerColumns, nameColumn, pairs } from '../columns.ts'
import type { Container, Pod, PodTemplate } from '../schemas/types.ts'
import { hostnameWarnings } from '../pod-names.ts'

export const pods: BuiltinKind<Pod> = {
  generation: true,
  returnsDeleted: true,
  selectableFields: {
    'spec.nodeName': field('spec', 'nodeName'),
    'spec.restartPolicy': field('spec', 'restartPolicy'),
    'spec.schedulerName': field('spec', 'schedulerName'),
    'spec.serviceAccountName': field('spec', 'serviceAccountName'),
    'spec.hostNetwork': (pod) => String(at(pod, 'spec', 'hostNetwork') === true),
    'status.phase': field('status', 'phase'),
    'status.podIP': (pod) => (at(pod, 'status', 'podIPs') as { ip: string }[] | undefined)?.[0]?.ip ?? '',
    // Upstream accepts this selector, but its value is always empty.
    'status.podIPs': () => '',
    'status.nominatedNodeName': field('status', 'nominatedNodeName'),
  },
  columns: podColumns,
  default: defaultPod,
  prepare(pod, old, { subresource, server, warn }) {
    if (!old) {
      for (const text of adoptAppArmorAnnotations(pod)) warn(text)
      pod.status = { phase: 'Pending', qosClass: qosClass(pod) }
      if (pod.spec.schedulingGates?.length) {
        const message = 'Scheduling is blocked due to non-empty scheduling gates'
        const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message }
        const lastTransitionTime = timestamp(server.clock.now())
        pod.status.conditions = [{ ...gated, lastProbeTime: null, lastTransitionTime } as never]
      }
    } else if (subresource === 'status') {
      if (old.status.qosClass !== undefined) pod.status.qosClass ??= old.status.qosClass
      const { hostIP, hostIPs } = pod.status
      if (hostIP && !hostIPs?.length) pod.status.hostIPs = [{ ip: hostIP }]
    }
  },
  gracePeriod({ spec, status }, requested) {
    // A pod without a node has not started, and a finished pod needs no grace period. A negative period counts as one second.
    // Upstream: CheckGracefulDelete.
    if (!spec.nodeName || status.phase === 'Failed' || status.phase === 'Succeeded') return 0
    const period = requested ?? Number(spec.terminationGracePeriodSeconds ?? 0)
    return period < 0 ? 1 : period
  },
  // Warnings are sent only on create: most updates come from programs.
  warnings: (pod, old) => (old ? [] : [...hostnameWarnings(pod.metadata.name), ...podWarnings('', pod)]),
  subresourceWrites: {
    ephemeralcontainers(pod, old) {
      const { ephemeralContainers } = pod.spec
      restore(pod, old)
      pod.spec = { ...old.spec }
      if (ephemeralContainers) pod.spec.ephemeralContainers = ephemeralContainers
      else delete pod.spec.ephemeralContainers
    },
    resize(pod, old) {
      const { containers, initContainers, resources } = pod.spec
      restore(pod, old)
      pod.spec = { ...old.spec, containers: withNewResources(old.spec.containers ?? [], containers ?? []) }
      if (old.spec.initContainers) pod.spec.initContainers = withNewResources(old.spec.initContainers, initContainers ?? [])
      if (resources) pod.spec.resources = resources
    },
  },
  validate(pod, old, { subresource }) {
    if (!old) return validatePodCreate(pod)
    switch (subresource) {
      case 'status':
        return validatePodStatus(pod, old)
      case 'ephemeralcontainers':
        return validateEphemeralContainersUpdate(pod, old)
      case 'resize':
        return validatePodResize(pod, old)
      case undefined:
      default:
        return validatePodUpdate(pod, old)
    }
  },
}

/** Restores status and metadata of the stored pod, except resourceVersion and, if the update has them, managedFields. */
function restore(pod: Pod, old: Pod): void {
  const { managedFields, resourceVersion } = pod.metadata
  pod.metadata = { ...old.metadata, resourceVersion, ...(managedFields ? { managedFields } : {}) }
  pod.status = old.status
}

/** Returns the old containers with the resources and, if set, the resizePolicy of the updated containers of the same names. */
function withNewResources(old: readonly Container[], updated: readonly Container[]): Container[] {
  // Reversed, so that the first of several containers with the same name is used.
  const byName = new Map(updated.toReversed().map((container) => [container.name, container]))
  return old.map((container) => {
    const newContainer = byName.get(container.name)
    if (!newContainer) return container
    const { resources, resizePolicy } = newContainer
    return { ...container, resources, ...(resizePolicy ? { resizePolicy } : {}) }
  })
}

export const podtemplates: BuiltinKind<PodTemplate> = {
  generation: true,
  returnsDeleted: true,
  columns: [
    nameColumn,
    ...containerColumns('template').map((containerColumn) => ({ ...containerColumn, priority: 0 })),
    column('Pod Labels', (o) => pairs(at(o, 'template', 'metadata', 'labels'))),
  ],
  default: ({ template }) => defaultPodTemplate(template),
  validate: ({ template }) => validatePodTemplate('template', template),
  warnings: (object, old) => templateWarnings('template', object.template, object, old),
}
