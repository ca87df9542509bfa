/** Sends hostile inputs to a server, and measures how long small requests of another user wait in the meantime. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { ConfigMap, Lease, Role, RoleBinding } from '@capstan/kube'
import { loadKubeconfig } from '@capstan/kube/node'
import type { RunningApiServer } from '../processes/api-server.ts'
import { cpuSeconds, residentBytes } from '../processes/proc.ts'
import type { Program } from '../processes/programs.ts'
import type { HostileInput } from './inputs.ts'

export interface Observed {
  /** HTTP status; 0 when the connection ended without a complete response. */
  readonly status: number
  /**
   * Longest time in milliseconds that the other user waited for a small request. Time in which the main thread of client or server waited for
   * a CPU is not counted, so that the result depends less on other processes of the machine.
   */
  readonly delay: number
  /** Longest CPU time of the server's main thread during a small request, in milliseconds. Of all values, it depends least on other processes. */
  readonly cpu: number
  /** CPU time of all threads of the server for the input and the small requests sent at the same time, in seconds. */
  readonly cpuSeconds: number
  /** Resident memory of the server after the input, in bytes. */
  readonly memory: number
}

export interface Observer {
  readonly apiServer: RunningApiServer
  /** Process of the API server itself, without etcd. */
  readonly server: Program
  observe(input: HostileInput): Promise<Observed>
  close(): void
}

const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/other'

/** Small requests of another user, who has permission to read and renew a Lease. */
const smallRequests: readonly HostileInput[] = [
  { name: 'health', method: 'GET', path: '/readyz' },
  { name: 'version', method: 'GET', path: '/version' },
  {
    name: 'a review',
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    type: 'application/json',
    body: JSON.stringify({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb: 'list', resource: 'pods' } },
    }),
  },
  { name: 'a Lease', method: 'GET', path: lease },
  {
    name: 'the renewal of a Lease',
    method: 'PATCH',
    path: lease,
    type: 'application/merge-patch+json',
    body: JSON.stringify({ spec: { renewTime: '2026-01-01T00:00:00.000000Z' } }),
  },
]

async function createLeaseAndPermissions(apiServer: RunningApiServer): Promise<void> {
  const client = apiServer.client()
  const metadata = { name: 'other', namespace: 'default' }
  await client.create(Lease, { metadata, spec: { holderIdentity: 'other' } })
  await client.create(Role, {
    metadata,
    rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'patch'] }],
  })
  await client.create(RoleBinding, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'other' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'other' }],
  })
}

/** Prepares measurements on a server that has the user `other`. */
export async function prepareObserver(apiServer: RunningApiServer): Promise<Observer> {
  await apiServer.client().create(ConfigMap, { metadata: { name: 'target', namespace: 'default' }, data: { a: '1' } })
  await createLeaseAndPermissions(apiServer)
  const agents = [new Agent({ ca: apiServer.ca, keepAlive: true }), new Agent({ ca: apiServer.ca, keepAlive: true })] as const
  const server = apiServer.programs.find(({ name }) => name === 'apiserver')!
  const waitedForCpu = () => schedulingOf(process.pid).waited + schedulingOf(server.pid).waited
  const { token: otherToken } = await loadKubeconfig(apiServer.kubeconfigOf('other'))
  if (otherToken === undefined) throw new Error('the user "other" has no token')
  for (const small of smallRequests) {
    const status = await send(apiServer, agents[1], otherToken, small)
    if (status !== 200 && status !== 201) throw new Error(`${apiServer.name}: ${small.name} of another user gets ${status}`)
  }
  return {
    apiServer,
    server,
    async observe(input) {
      let isOver = false
      const cpuBefore = cpuSeconds(server.pid)
      let [delay, cpu] = [0, 0]
      const otherUserRequests = (async () => {
        for (let index = 0; index === 0 || !isOver; index++) {
          const [started, waited, computed] = [performance.now(), waitedForCpu(), schedulingOf(server.pid).computed]
          await send(apiServer, agents[1], otherToken, smallRequests[index % smallRequests.length]!)
          delay = Math.max(delay, performance.now() - started - (waitedForCpu() - waited))
          cpu = Math.max(cpu, schedulingOf(server.pid).computed - computed)
        }
      })()
      const status = await send(apiServer, agents[0], apiServer.token, input)
      isOver = true
      await otherUserRequests
      return { status, delay, cpu, cpuSeconds: cpuSeconds(server.pid) - cpuBefore, memory: residentBytes(server.pid) }
    },
    close: () => agents.forEach((agent) => agent.destroy()),
  }
}

/**
 * Returns how long the main thread of a process computed and how long it waited for a CPU, in milliseconds; 0 if the system does
 * not report this.
 */
function schedulingOf(pid: number): { readonly computed: number; readonly waited: number } {
  try {
    const [computed, waited] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number)
    return { computed: computed! / 1e6, waited: waited! / 1e6 }
  } catch {
    return { computed: 0, waited: 0 }
  }
}

function send(
  { url }: RunningApiServer,
  agent: Agent,
  token: string,
  { method, path, type, accept, body }: HostileInput,
): Promise<number> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(accept === undefined ? {} : { accept }),
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    }
    const sent = request(new URL(url), { method, path, agent, headers }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode ?? 0))
        .on('error', () => resolve(0))
    })
    sent.on('error', () => resolve(0))
    sent.end(body)
  })
}
