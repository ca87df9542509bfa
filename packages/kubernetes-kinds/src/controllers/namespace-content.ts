/**
 * Creates and restores the standard objects of every namespace: the service account `default`, and the ConfigMap with the API
 * server's CA certificate. Upstream: pkg/controller/serviceaccount and pkg/controller/certificates/rootcacertpublisher.
 */
import { ConfigMap, equal, isReason, ServiceAccount } from '@capstan/kube'
import { type ControllerOptions, WorkQueue } from '@capstan/apiserver/kinds'

type Options = Omit<ControllerOptions, 'registry'>

/** Runs the controller that creates the service account `default` in every namespace. Returns a function that stops the controller. */
export const runServiceAccounts = (options: Options): (() => void) =>
  inEveryNamespace(options, 'serviceaccounts', 'default', async (namespace) => {
    if (options.store.get({ resource: 'serviceaccounts', namespace, name: 'default' })) return
    await options.client.create(ServiceAccount, { metadata: { name: 'default', namespace } })
  })

const configMapName = 'kube-root-ca.crt'
const annotations = {
  'kubernetes.io/description':
    'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
}

/**
 * Runs the controller that creates the ConfigMap `kube-root-ca.crt` in every namespace, and restores its data. Returns a function that stops
 * the controller.
 *
 * @param certificate CA certificate, PEM
 */
export const runRootCA = (options: Options, certificate: string): (() => void) =>
  inEveryNamespace(options, 'configmaps', configMapName, async (namespace) => {
    const data = { 'ca.crt': certificate }
    const stored = options.store.get({ resource: 'configmaps', namespace, name: configMapName }) as ConfigMap | undefined
    if (!stored) await options.client.create(ConfigMap, { metadata: { name: configMapName, namespace, annotations }, data })
    else if (!equal(stored.data, data)) {
      const metadata = { ...stored.metadata, annotations: { ...stored.metadata.annotations, ...annotations } }
      await options.client.update(ConfigMap, { ...stored, metadata, data })
    }
  })

/**
 * Runs `ensure` for each namespace that is not being deleted, and again when the namespace or its object with this resource and name
 * changes. Returns a function that stops the subscriptions and the queue.
 */
function inEveryNamespace(
  { store, clock, log }: Options,
  resource: string,
  name: string,
  ensure: (namespace: string) => Promise<void>,
): () => void {
  const queue = new WorkQueue({ name: resource, clock, log, run })
  const stops = [
    store.subscribe('namespaces', ({ key, object }) => {
      if (object) queue.add(key.name)
    }),
    store.subscribe(resource, ({ key }) => {
      if (key.name === name) queue.add(key.namespace)
    }),
  ]
  for (const { metadata } of store.list('namespaces')) queue.add(metadata.name)
  return () => {
    for (const stop of stops) stop()
    queue.close()
  }

  async function run(namespace: string): Promise<void> {
    const stored = store.get({ resource: 'namespaces', namespace: '', name: namespace })
    if (!stored || stored.metadata.deletionTimestamp !== undefined) return
    try {
      await ensure(namespace)
    } catch (err) {
      // Another client wrote first, and that change triggers another run; or the namespace is being deleted; or admission denied the write,
      // which is then not retried.
      if (!isReason(err, 'AlreadyExists', 'Conflict', 'NotFound', 'Forbidden')) throw err
    }
  }
}
