import { badRequest, isRecord, type Status } from '@capstan/kube'
import { deletionOf, removeNamed } from './delete.ts'
import type { Call, Plane } from './plane.ts'

/** POST pods/x/eviction: deletes the pod. There are no disruption budgets here that could be in the way. */
export async function evict(plane: Plane, call: Call): Promise<Status> {
  const { body, namespace, name } = call.request
  const eviction = isRecord(body) ? body : {}
  if ((eviction.kind ?? 'Eviction') !== 'Eviction') throw badRequest(`not an Eviction: ${JSON.stringify(eviction.kind)}`)
  await removeNamed(plane, call, namespace, name!, deletionOf(eviction.deleteOptions))
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}
