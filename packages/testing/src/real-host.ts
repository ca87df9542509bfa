/** Runs tests on a real kube-apiserver instead of the embedded one. */
import type { Store } from '@capstan/apiserver'
import type { ApiServer } from '@capstan/kubernetes-kinds'
import type { Manager } from '@capstan/controller'
import type { Admission, Client, Clock, DeclaredKind, Kind, KubeObject, Transport } from '@capstan/kube'
import {
  ConfigMap,
  createClient,
  Event,
  isReason,
  keyOf,
  Lease,
  Namespace,
  Node,
  orAbsent,
  Secret,
  StatusError,
  systemClock,
  systemRandom,
  withSend,
} from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { testWebhooks } from './test-webhooks.ts'
import type { Host } from './env.ts'
import { virtualTimestamps } from './virtual-timestamps.ts'

export interface RealHostOptions {
  /**
   * Path of a kubeconfig with full access to the server. At the end of a test, these objects outside of kube-system are deleted: all objects
   * of `kinds`, and all Secrets, ConfigMaps, Events, Leases, Nodes and Namespaces that the server has not created itself.
   */
  readonly kubeconfig: string
  readonly clock: Clock
  readonly kinds: readonly DeclaredKind[]
  readonly admission: readonly Admission[]
  /** Wraps the transport of the test's own client. */
  readonly wrapForTest?: (transport: Transport) => Transport
}

export async function realHost({
  kubeconfig,
  clock,
  kinds,
  admission,
  wrapForTest = (same) => same,
}: RealHostOptions): Promise<Host> {
  const access = await loadKubeconfig(kubeconfig)
  const timestamps = virtualTimestamps(clock)
  const open: Transport[] = []
  const connect = () => {
    // Timeouts of real sockets use the system clock, independent of the controllers' clock.
    const transport = httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: 'test' })
    open.push(transport)
    return timestamps.wrap(plainRejections(lastingWatches(transport)))
  }
  const client = createClient(wrapForTest(connect()))
  const webhooks = await testWebhooks(client, admission, kinds)
  /** The server's revision at which all informers were last current. */
  let compared = ''
  /** Highest revision of an object that `isCaughtUp` has read. */
  let newest = 0
  return {
    client,
    conversion: webhooks.conversion,
    transport: connect,
    server: withoutEmbeddedState,
    // Only `revision` is supported. It increases when `isCaughtUp` reads objects that were created or changed.
    store: {
      get revision() {
        return newest
      },
    } as Store,
    async installed() {
      // In a kube-apiserver, a CRD is Established a moment before its kind is served. An informer would retry only when the test advances
      // the virtual clock.
      await Promise.all(kinds.map((kind) => untilServed(client, kind)))
      if (admission.length > 0) await webhooks.configure()
    },
    async isCaughtUp(managers: readonly Manager[]) {
      // The resourceVersion of a list is the current revision of the whole server.
      const { metadata } = await client.list(Namespace, { limit: 1 })
      if (metadata.resourceVersion === compared) return true
      const areEqual = await Promise.all(
        managers
          .flatMap((manager) => manager.informers())
          .map(async (informer) => {
            const { items } = await client.list(informer.kind)
            for (const item of items) newest = Math.max(newest, Number(item.metadata.resourceVersion))
            const isKnown = (item: KubeObject) =>
              informer.get(keyOf(item))?.metadata.resourceVersion === item.metadata.resourceVersion
            return items.length === informer.size && items.every(isKnown)
          }),
      )
      if (areEqual.includes(false)) return false
      compared = metadata.resourceVersion
      return true
    },
    async close() {
      await webhooks.close()
      await wipe(client, kinds)
      for (const transport of open) transport.close()
    },
  }
}

const withoutEmbeddedState = new Proxy({} as ApiServer, {
  get() {
    throw new Error('This test reads the state of the embedded API server: it cannot run on a real one')
  },
})

/** Resolves when the server serves a kind. */
async function untilServed(client: Client, kind: Kind): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.list(kind, { limit: 1 })
      return
    } catch (err) {
      if (!isReason(err, 'NotFound') || attempt === 100) throw err
      await new Promise((resolve) => void setTimeout(resolve, 100))
    }
  }
}

const builtIn: readonly Kind[] = [Secret, ConfigMap, Event, Lease, Node]
/** Names of objects that a server creates by itself, by kind. */
const ownObjects: { readonly [kind: string]: RegExp } = {
  Namespace: /^(default|kube-.*)$/,
  ConfigMap: /^(kube-root-ca\.crt|kube-.*|extension-apiserver-authentication)$/,
  Lease: /^apiserver-/,
}

/** Deletes the objects that `RealHostOptions.kubeconfig` describes, also those with finalizers. Keeps the CRDs. */
async function wipe(client: Client, kinds: readonly Kind[]): Promise<void> {
  const remove = async (kind: Kind, { metadata: { name, namespace, finalizers = [] } }: KubeObject) => {
    if (ownObjects[kind.kind]?.test(name) || namespace === 'kube-system') return
    const key = { name, ...(namespace === undefined ? {} : { namespace }) }
    if (finalizers.length > 0)
      await orAbsent(client.patch(kind, key, { type: 'merge', body: { metadata: { finalizers: null } } }))
    await orAbsent(client.delete(kind, key))
  }
  const allKinds = [...kinds, ...builtIn, Namespace as Kind]
  await Promise.all(
    allKinds.map(async (kind) => Promise.all((await client.list(kind)).items.map((object) => remove(kind, object)))),
  )
  while ((await client.list(Namespace)).items.some(({ metadata }) => !ownObjects.Namespace!.test(metadata.name)))
    await new Promise((resolve) => void setTimeout(resolve, 100))
}

/**
 * Reopens a watch in real time when the server has ended it or the connection was lost, but not after an Expired or Gone error. An informer
 * would reopen it only when the test advances the virtual clock.
 */
const lastingWatches = (transport: Transport): Transport => ({
  close: () => transport.close(),
  send: (request, signal) => transport.send(request, signal),
  async watch(request, signal) {
    const first = await transport.watch(request, signal)
    return (async function* () {
      let last = request.options?.resourceVersion
      for (let events = first; !signal.aborted; ) {
        try {
          for await (const event of events) {
            last = event.object.metadata.resourceVersion
            yield event
          }
        } catch (err) {
          if (isReason(err, 'Expired', 'Gone')) throw err
        }
        if (signal.aborted) return
        await new Promise((resolve) => void setTimeout(resolve, 100))
        const options = { ...request.options, ...(last === undefined ? {} : { resourceVersion: last }) }
        events = await transport.watch({ ...request, options }, signal)
      }
    })()
  },
})

/** Removes the prefix of rejections by webhooks, so that their messages equal those of in-process admission. */
const plainRejections = (transport: Transport): Transport =>
  withSend(transport, async (request, signal) => {
    try {
      return await transport.send(request, signal)
    } catch (err) {
      if (!(err instanceof StatusError)) throw err
      const message = err.message.replace(/^admission webhook "[^"]*" denied the request: /, '')
      throw message === err.message ? err : StatusError.from({ ...err.status, message })
    }
  })
