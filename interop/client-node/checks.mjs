/**
 * Checks typical uses of @kubernetes/client-node with the server of $KUBECONFIG. Prints `ok NAME` or `not ok NAME: reason` for
 * each check.
 * This file is JavaScript, so that the type check of the repository does not need the package.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import {
  ApiException,
  AppsV1Api,
  AuthorizationV1Api,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  ListWatch,
  loadYaml,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  V1MicroTime,
  VersionApi,
  Watch,
} from '@kubernetes/client-node'

const config = new KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(CoreV1Api)
const namespace = 'default'

const checks = {
  'a kubeconfig is read from the environment, a file and a text': async () => {
    const path = process.env.KUBECONFIG
    const [fromFile, fromText] = [new KubeConfig(), new KubeConfig()]
    fromFile.loadFromFile(path)
    fromText.loadFromString(readFileSync(path, 'utf8'))
    for (const one of [config, fromFile, fromText]) {
      assert.equal(one.getCurrentCluster().server, config.getCurrentCluster().server)
      assert.match((await one.makeApiClient(VersionApi).getCode()).gitVersion, /^v1\.36\./)
    }
  },

  'the typed API creates, replaces, lists and deletes, and rejects a conflicting replace with ApiException': async () => {
    const created = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'typed' }, data: { a: '1' } } })
    assert.ok(created.metadata.creationTimestamp instanceof Date)
    created.data.a = '2'
    const replaced = await core.replaceNamespacedConfigMap({ name: 'typed', namespace, body: created })
    assert.notEqual(replaced.metadata.resourceVersion, created.metadata.resourceVersion)
    const list = await core.listNamespacedConfigMap({ namespace, fieldSelector: 'metadata.name=typed' })
    assert.deepEqual(list.items.map(({ data }) => data), [{ a: '2' }])
    await assert.rejects(core.replaceNamespacedConfigMap({ name: 'typed', namespace, body: created }), (err) => {
      assert.ok(err instanceof ApiException)
      assert.equal(err.code, 409)
      assert.equal(JSON.parse(err.body).reason, 'Conflict')
      return true
    })
    assert.equal((await core.deleteNamespacedConfigMap({ name: 'typed', namespace })).status, 'Success')
    await assert.rejects(core.readNamespacedConfigMap({ name: 'typed', namespace }), { code: 404 })
  },

  'times and named ports are preserved, stringData is encoded, and an access review is answered': async () => {
    const renewTime = new V1MicroTime('2026-01-02T03:04:05.678Z')
    const leases = config.makeApiClient(CoordinationV1Api)
    const lease = await leases.createNamespacedLease({
      namespace,
      body: { metadata: { name: 'l' }, spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime } },
    })
    assert.match(JSON.stringify(lease.spec.renewTime), /2026-01-02T03:04:05\.678/)
    const service = await core.createNamespacedService({
      namespace,
      body: { metadata: { name: 's' }, spec: { selector: { a: 'b' }, ports: [{ port: 80, targetPort: 'web' }] } },
    })
    assert.deepEqual([service.spec.ports[0].targetPort, service.spec.ports[0].protocol], ['web', 'TCP'])
    const secret = await core.createNamespacedSecret({ namespace, body: { metadata: { name: 's' }, stringData: { k: 'v' } } })
    assert.equal(secret.data.k, 'dg==')
    const review = await config.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
      body: { spec: { resourceAttributes: { verb: 'list', resource: 'pods' } } },
    })
    assert.equal(review.status.allowed, true)
  },

  'JSON, merge and strategic merge patches change an object, and server-side apply records the field manager': async () => {
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'patched' }, data: { a: '1' } } })
    const patch = (body, strategy, options = {}) =>
      core.patchNamespacedConfigMap({ name: 'patched', namespace, body, ...options }, setHeaderOptions('Content-Type', strategy))
    assert.equal((await patch([{ op: 'replace', path: '/data/a', value: '2' }], PatchStrategy.JsonPatch)).data.a, '2')
    assert.equal((await patch({ data: { b: '1' } }, PatchStrategy.MergePatch)).data.b, '1')
    assert.equal((await patch({ data: { c: '1' } }, PatchStrategy.StrategicMergePatch)).data.c, '1')
    const configuration = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { d: '1' } }
    const applied = await patch(configuration, PatchStrategy.ServerSideApply, { fieldManager: 'me', force: true })
    assert.ok(applied.metadata.managedFields.some(({ manager, operation }) => manager === 'me' && operation === 'Apply'))
  },

  'KubernetesObjectApi creates, reads, applies, lists and deletes objects of any kind': async () => {
    const objects = KubernetesObjectApi.makeApiClient(config)
    await objects.create(widgets)
    const custom = config.makeApiClient(CustomObjectsApi)
    const resource = { group: 'shop.example.com', version: 'v1', namespace, plural: 'widgets' }
    await until(async () => (await custom.listNamespacedCustomObject(resource)).items.length === 0)
    const widget = { apiVersion: 'shop.example.com/v1', kind: 'Widget', metadata: { name: 'w', namespace }, spec: { size: 1 } }
    assert.equal((await objects.create(widget)).spec.size, 1)
    const change = { ...widget, spec: { size: 2, colour: 'red' } }
    const applied = await objects.patch(change, undefined, undefined, 'me', true, PatchStrategy.ServerSideApply)
    assert.deepEqual(applied.spec, { size: 2, colour: 'red' })
    const merged = await objects.patch({ ...widget, spec: { size: 3 } }, undefined, undefined, 'me', undefined, PatchStrategy.MergePatch)
    assert.equal(merged.spec.size, 3)
    assert.equal((await objects.read(widget)).spec.colour, 'red')
    const listed = await objects.list('shop.example.com/v1', 'Widget', namespace)
    assert.deepEqual(listed.items.map(({ metadata }) => metadata.name), ['w'])
    const replaced = await objects.replace({ ...listed.items[0], apiVersion: widget.apiVersion, kind: 'Widget', spec: { size: 4 } })
    assert.deepEqual(replaced.spec, { size: 4 })
    await objects.delete(widget)
    await assert.rejects(objects.read(widget), { code: 404 })
    const deployment = loadYaml(deploymentYaml)
    await objects.create(deployment)
    assert.equal((await config.makeApiClient(AppsV1Api).readNamespacedDeployment({ name: 'd', namespace })).spec.replicas, 2)
  },

  'a watch reports changes': async () => {
    const events = []
    let end
    const ended = new Promise((resolve) => (end = resolve))
    const { metadata } = await core.listNamespacedConfigMap({ namespace })
    const stop = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion: metadata.resourceVersion, allowWatchBookmarks: true },
      (type, object) => type !== 'BOOKMARK' && events.push(`${type} ${object.metadata.name}`),
      end,
    )
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'watched' } } })
    await core.deleteNamespacedConfigMap({ name: 'watched', namespace })
    await until(() => events.length === 2)
    assert.deepEqual(events, ['ADDED watched', 'DELETED watched'])
    stop.abort()
    await ended
  },

  'an informer reports changes, and ListWatch lists objects': async () => {
    const events = []
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const selector = 'informed=yes'
    const informer = makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace, labelSelector: selector }), selector)
    for (const event of ['add', 'update', 'delete']) informer.on(event, ({ metadata }) => events.push(`${event} ${metadata.name}`))
    informer.on('error', (err) => events.push(String(err)))
    const body = { metadata: { name: 'informed', labels: { informed: 'yes' } } }
    await core.createNamespacedConfigMap({ namespace, body })
    await informer.start()
    await until(() => events.length === 1)
    assert.equal(informer.get('informed', namespace)?.metadata.name, 'informed')
    await core.patchNamespacedConfigMap(
      { name: 'informed', namespace, body: { data: { x: 'y' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    )
    await until(() => events.length === 2)
    await core.deleteNamespacedConfigMap({ name: 'informed', namespace })
    await until(() => events.length === 3)
    assert.deepEqual(events, ['add informed', 'update informed', 'delete informed'])
    await informer.stop()

    const listWatch = new ListWatch(path, new Watch(config), () => core.listNamespacedConfigMap({ namespace }), false)
    await listWatch.start()
    assert.ok(listWatch.list().length > 0)
    await listWatch.stop()
  },
}

const widgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.shop.example.com' },
  spec: {
    group: 'shop.example.com',
    names: { kind: 'Widget', plural: 'widgets' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' }, colour: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

const deploymentYaml = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: d, namespace: default }
spec:
  replicas: 2
  selector: { matchLabels: { a: b } }
  template:
    metadata: { labels: { a: b } }
    spec: { containers: [{ name: main, image: example.com/app }] }
`

/** Calls `holds` until it returns true, and throws after 30 seconds. Errors of `holds` count as false. */
async function until(holds) {
  const end = performance.now() + 30_000
  for (;;) {
    if (await Promise.resolve().then(holds).catch(() => false)) return
    if (performance.now() > end) throw new Error(`not true within 30 seconds: ${String(holds)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

for (const [name, check] of Object.entries(checks)) {
  try {
    await check()
    console.log(`ok ${name}`)
  } catch (err) {
    console.log(`not ok ${name}: ${(err.stack ?? String(err)).replaceAll('\n', ' | ')}`)
  }
}
