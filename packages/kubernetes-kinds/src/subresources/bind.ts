/** POST pods/x/binding and POST bindings: a scheduler assigns a pod to a node. Upstream: BindingREST and assignPod, v1.36. */
import { badRequest, conflict, draft, isRecord, type Status, StatusError, timestamp } from '@capstan/kube'
import { bindingErrors } from '../kinds/pod/changes.ts'
import type { Pod, PodCondition } from '../kinds/schemas/types.ts'
import { StoreConflict, requireNamespace, type RequestContext, type ServerContext, stored } from '@capstan/apiserver/kinds'

interface Binding {
  readonly metadata?: { readonly name?: string; readonly annotations?: { [key: string]: string }; readonly uid?: string }
  readonly target?: { readonly kind?: string; readonly name?: string }
}

const resource = { group: '', plural: 'pods/binding' }

export async function bind(server: ServerContext, { request, options, info }: RequestContext): Promise<Status> {
  const { metadata = {}, target = {} } = (isRecord(request.body) ? request.body : {}) as Binding
  if (request.name !== undefined && metadata.name !== request.name) {
    throw badRequest('name in URL does not match name in Binding object')
  }
  const errors = bindingErrors(target)
  if (errors.length > 0) {
    const lines = errors.map(({ field, text }) => `${field}: ${text}`)
    throw new StatusError('', lines.length === 1 ? lines[0]! : `[${lines.join(', ')}]`)
  }
  const name = metadata.name ?? ''
  const key = { resource: 'pods', namespace: request.namespace ?? '', name }
  const pods = info.storage === 'pods' ? info : server.registry.find('', 'v1', 'pods')!
  for (;;) {
    const current = stored(server, pods, key)
    requireNamespace(server, pods, current)
    const pod = draft(current) as unknown as Pod
    assign(pod, target.name!, timestamp(server.clock.now()))
    if (metadata.annotations) pod.metadata.annotations = { ...pod.metadata.annotations, ...metadata.annotations }
    if (options.dryRun) return success
    try {
      await server.store.commit({ key, previous: current, object: pod as never })
      return success
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
    }
  }
}

const success: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }

/** Assigns a draft of a pod to a node. @throws StatusError Conflict when the pod is being deleted, is assigned, or has scheduling gates */
function assign({ metadata: { name, deletionTimestamp }, spec, status }: Pod, node: string, now: string): void {
  const rejected = (problem: string) => conflict(resource, name, `pod ${name} ${problem}`)
  if (deletionTimestamp !== undefined) throw rejected('is being deleted, cannot be assigned to a host')
  if (spec.nodeName) throw rejected(`is already assigned to node "${spec.nodeName}"`)
  if (spec.schedulingGates?.length) throw rejected('has non-empty .spec.schedulingGates')
  spec.nodeName = node
  const scheduled = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: now,
  } as unknown as PodCondition
  status.conditions = [...(status.conditions ?? []).filter(({ type }) => type !== scheduled.type), scheduled]
}
