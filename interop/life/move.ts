/** Runs `clusterctl move` on the objects of a namespace, to another API server and back. */
import { type Client, keyOf, type Kind, type KubeObject, type Json, Namespace, orAbsent } from '@capstan/kube'
import type { RunningApiServer } from '../processes/api-server.ts'
import { clusterctlOn } from '../upstream/clusterctl.ts'
import { clusterApiObjects, customKinds, type LifeContext } from './life.ts'

/**
 * Moves the Cluster API objects of the namespace to the API server `elsewhere` and back, and checks that none is lost. No manager runs on
 * `elsewhere`.
 */
export async function moveAndMoveBack(
  context: LifeContext,
  apiServer: RunningApiServer,
  elsewhere: RunningApiServer,
): Promise<void> {
  const { client, namespace, checks } = context
  const target = elsewhere.client()
  // clusterctl does not move every Secret of the namespace (not those that belong to no other object), so Secrets are not compared.
  const movableOn = async (server: Client) =>
    [...(await clusterApiObjects({ client: server, namespace })).keys()].sort().filter((name) => !name.startsWith('Secret '))
  const before = await movableOn(client)
  const objectsWithStatus = await listWithStatus(client, namespace)
  await (await clusterctlOn(apiServer)).run('move', '--namespace', namespace, '--to-kubeconfig', elsewhere.kubeconfig)
  const arrived = await movableOn(target)
  checks.check(
    'clusterctl moves every object to another API server',
    arrived.join() === before.join(),
    difference(before, arrived),
  )
  const stayed = await movableOn(client)
  checks.check('clusterctl move deletes every object on the first API server', stayed.length === 0, stayed)
  // clusterctl moves objects without their status, and rejects Clusters that are not provisioned. Usually, managers at the target
  // compute the status again. No manager runs on `elsewhere`, so the suite copies the status.
  for (const { kind, object } of objectsWithStatus) {
    const body = { status: object.status! }
    await orAbsent(target.patch(kind, keyOf(object), { type: 'merge', body }, { subresource: 'status' }))
  }
  await (await clusterctlOn(elsewhere)).run('move', '--namespace', namespace, '--to-kubeconfig', apiServer.kubeconfig)
  const back = await movableOn(client)
  checks.check('the same objects exist after they were moved back', back.join() === before.join(), difference(before, back))
  await target.delete(Namespace, { name: namespace })
}

interface WithStatus {
  readonly kind: Kind
  readonly object: KubeObject & { readonly status?: Json }
}

async function listWithStatus(client: Client, namespace: string): Promise<WithStatus[]> {
  const objectsWithStatus: WithStatus[] = []
  for (const kind of [...(await customKinds(client)).values()].filter(({ scope }) => scope === 'Namespaced'))
    for (const object of (await client.list(kind, { namespace })).items as WithStatus['object'][])
      if (object.status !== undefined) objectsWithStatus.push({ kind, object })
  return objectsWithStatus
}

const difference = (before: readonly string[], after: readonly string[]) => ({
  missing: before.filter((name) => !after.includes(name)),
  more: after.filter((name) => !before.includes(name)),
})
