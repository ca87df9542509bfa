import { badRequest, isRecord, type Status, type UnknownObject } from '@capstan/kube'
import { mutateWebhooks, validateWebhooks } from './ask-webhooks.ts'
import { deletionOf, removeNamed } from './delete.ts'
import type { Call, Plane } from './plane.ts'

/** POST pods/x/eviction: deletes the pod. There are no disruption budgets here that could be in the way. */
export async function evict(plane: Plane, call: Call): Promise<Status> {
  const { body, namespace, name } = call.request
  const eviction = isRecord(body) ? body : {}
  if ((eviction.kind ?? 'Eviction') !== 'Eviction') throw badRequest(`not an Eviction: ${JSON.stringify(eviction.kind)}`)
  await announceEviction(plane, call, eviction)
  await removeNamed(plane, call, namespace, name!, deletionOf(eviction.deleteOptions))
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}

/** Webhooks are asked about the Eviction, and not once more about the deletion that follows from it. */
async function announceEviction(plane: Plane, call: Call, eviction: Record<string, unknown>): Promise<void> {
  const { name, namespace } = call.request
  const metadata = { ...(isRecord(eviction.metadata) ? eviction.metadata : {}), name, namespace }
  const object = { kind: 'Eviction', apiVersion: 'policy/v1', ...eviction, metadata } as unknown as UnknownObject
  const view = { kind: { group: 'policy', version: 'v1', kind: 'Eviction' }, of: (one: UnknownObject) => one, into() {} }
  await mutateWebhooks(plane, call, 'CREATE', object, undefined, view)
  await validateWebhooks(plane, call, 'CREATE', object, undefined, view)
}
