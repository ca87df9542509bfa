/**
 * Tests failing inputs: mistakes in classes, templates, topologies and other objects of users, name conflicts, denied writes, incorrect
 * providers and extensions, and deletions that do not end. The measurement begins at least ten minutes after the input, and lasts half an hour
 * of virtual time. Inputs with `during` change objects in each minute of the measurement instead. Expectations:
 *
 * - The server stores no write of the controllers, except Events, and rejects at most a few (`MaxRejected`). For four groups of
 *   inputs, the number of stored writes is limited instead:
 *   - `retries`: as in upstream, a retry writes. Usually it creates objects, and deletes them after a failure.
 *   - `writesPerCall`: a blocking hook is called every 30 s, and its message and the time until which it blocks are recorded.
 *   - `writesPerMinute`: fields of a provider's object change every minute.
 *   - `writesOnce`: texts of conditions depend on the time since the input.
 * - The number of objects is the same before and after, including Secrets and ConfigMaps. Events are counted separately: at most two are
 *   written for each rejected write, and one for each write of a retry. These Events may be new objects, because they contain the generated
 *   names of objects.
 * - No condition, current or deprecated (v1beta1), changes its text, apart from parts that depend on the time or on the number of hook
 *   calls, and random suffixes of names. Inputs with `writesPerMinute` are not checked for this.
 */
import {
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
  Cluster,
  ClusterClass,
  ClusterResourceSet,
  GeneratePatches,
  Machine,
  MachineDeployment,
  MachineHealthCheck,
  ValidateTopology,
} from '@capstan/api'
import {
  ConfigMap,
  Event,
  type Kind,
  type KubeObject,
  minutes,
  type ObjectKey,
  Secret,
  StatusError,
  timestamp,
  type Transport,
  ValidatingWebhookConfiguration,
  withSend,
} from '@capstan/kube'
import { demoFolder } from '@capstan/lab'
import { LocalBootstrapConfig, LocalCluster, LocalControlPlane, LocalMachine, LocalMachineTemplate } from '@capstan/local'
import type { WebhookTransport } from '@capstan/apiserver'
import { afterEach, describe, expect, test } from 'vitest'
import { manifestKinds, readManifests } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'
import { type HookScript, scriptedRuntime } from './scripted-runtime.ts'

const demo = { namespace: 'default', name: 'demo' }

/** Objects of the demo (class and Cluster of `npm start`), by kind and name. A test changes them before they are created. */
type Manifests = Record<string, any>

interface FailingInput {
  readonly name: string
  readonly runtime?: HookScript
  /** Changes the manifests of the demo. */
  readonly change?: (manifests: Manifests) => void
  /** Called before the demo is created. */
  readonly before?: (env: ManagementEnv) => Promise<unknown>
  /** Called one minute after the demo was created. */
  readonly later?: (env: ManagementEnv) => Promise<unknown>
  /** Maximum number of writes for each call of a blocking hook. They record its message and until when it blocks. Default: 0. */
  readonly writesPerCall?: number
  /**
   * Retries that write: the number of objects whose reconcile fails, and the maximum number of writes of each retry of one object. In the
   * measured half hour each object is retried twice, after 655 and 1000 seconds of backoff. Default: no writes.
   */
  readonly retries?: { readonly objects: number; readonly writes: number }
  /** Called before each minute of the measurement. */
  readonly during?: (env: ManagementEnv, minute: number) => Promise<unknown>
  /** Maximum number of writes per minute of the measurement, on average. Default: 0. */
  readonly writesPerMinute?: number
  /** Responds to calls of the webhook that `registerWebhook` registers. */
  readonly webhooks?: WebhookTransport
  /** Maximum number of further writes, which update texts that depend on the time since the input. Default: 0. */
  readonly writesOnce?: number
  /** Matches the part of condition texts that may change. */
  readonly changes?: RegExp
}

const load = (file: string): Manifests =>
  Object.fromEntries(readManifests(new URL(file, demoFolder)).map((object) => [`${object.kind} ${object.metadata.name}`, object]))

async function createAll(env: ManagementEnv, manifests: Manifests): Promise<void> {
  for (const object of Object.values(manifests)) await env.client.create(manifestKinds.get(object.kind)!, object)
}

const user = { name: 'user', groups: ['system:masters'], agent: 'kubectl' }

/** Creates an object of a kind for which `@capstan/kube` has no `Kind`. */
const create = (env: ManagementEnv, group: string, plural: string, body: object, namespace?: string) =>
  env.management.server.engine.execute(
    { verb: 'create', group, version: 'v1', plural, body, ...(namespace === undefined ? {} : { namespace }) },
    user,
  )

const refOf = (kind: string, name: string) => ({ apiVersion: 'infrastructure.capstan.dev/v1alpha1', kind, name })

const keyOf = ({ metadata }: KubeObject) => ({ namespace: metadata.namespace!, name: metadata.name })
const otherOwner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'other', uid: 'other', controller: true }
const machineDeployment = (clusterName: string, template: string): any => ({
  clusterName,
  replicas: 1,
  selector: { matchLabels: { a: 'b' } },
  template: {
    metadata: { labels: { a: 'b' } },
    spec: {
      clusterName,
      version: 'v1.36.0',
      bootstrap: { configRef: { apiGroup: 'bootstrap.capstan.dev', kind: 'LocalBootstrapConfigTemplate', name: template } },
      infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachineTemplate', name: template },
    },
  },
})
const changeClass = async (env: ManagementEnv, change: (spec: any) => void) => {
  const spec = structuredClone((await env.client.get(ClusterClass, demo)).spec)
  change(spec)
  await env.client.patch(ClusterClass, demo, { type: 'merge', body: { spec: spec as never } })
}
const externalPatch = (manifests: Manifests) =>
  classOf(manifests).patches.push({
    name: 'external',
    external: { generatePatchesExtension: 'scripted.test', validateTopologyExtension: 'scripted.test' },
  })
/** Returns the items of a response, with a JSON patch of the first LocalMachineTemplate of a request. */
const patched = (request: Record<string, any>, value: string, path = '/spec/template/spec/simulated/nodeDelay') => {
  const item = request.items.find(({ object }: any) => object.kind === 'LocalMachineTemplate')
  return [
    {
      uid: item.uid,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify([{ op: 'replace', path, value }])).toString('base64'),
    },
  ]
}

/** Creates a policy, with a binding, that denies writes to resources. */
const deny = async (env: ManagementEnv, group: string, resources: readonly string[], operations: readonly string[]) => {
  const policyGroup = 'admissionregistration.k8s.io'
  const metadata = { name: 'deny' }
  await create(env, policyGroup, 'validatingadmissionpolicies', {
    apiVersion: `${policyGroup}/v1`,
    kind: 'ValidatingAdmissionPolicy',
    metadata,
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: { resourceRules: [{ apiGroups: [group], apiVersions: ['*'], operations, resources }] },
      validations: [{ expression: 'false', message: 'not on a Sunday' }],
    },
  })
  await create(env, policyGroup, 'validatingadmissionpolicybindings', {
    apiVersion: `${policyGroup}/v1`,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata,
    spec: { policyName: 'deny', validationActions: ['Deny'] },
  })
}

/** Registers a webhook that is called for writes of resources. The `webhooks` of the input respond. */
const registerWebhook = (env: ManagementEnv, group: string, resources: string[], operations: string[]) =>
  env.client.create(ValidatingWebhookConfiguration, {
    metadata: { name: 'test' },
    webhooks: [
      {
        name: 'deny.example.com',
        clientConfig: { url: 'https://127.0.0.1:1/validate' },
        rules: [{ apiGroups: [group], apiVersions: ['*'], resources, operations }],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds: 10,
      },
    ],
  })
const denyingWebhooks: WebhookTransport = {
  async post(_, body) {
    const { apiVersion, kind, request } = JSON.parse(body)
    const response = { uid: request.uid, allowed: false, status: { code: 403, message: 'not on a Sunday' } }
    return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify({ apiVersion, kind, response })) }
  },
  close() {},
}
const unresponsiveWebhooks: WebhookTransport = { post: () => new Promise(() => {}), close() {} }

const quota = (env: ManagementEnv, hard: Record<string, string>) =>
  create(
    env,
    '',
    'resourcequotas',
    { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard } },
    'default',
  )

const patchOfWorkers = (jsonPatches: object[]) => ({
  name: 'broken',
  definitions: [
    {
      selector: {
        apiVersion: 'infrastructure.capstan.dev/v1alpha1',
        kind: 'LocalMachineTemplate',
        matchResources: { machineDeploymentClass: { names: ['worker'] } },
      },
      jsonPatches,
    },
  ],
})
const classOf = (manifests: Manifests) => manifests['ClusterClass demo'].spec
const workerOf = (manifests: Manifests) => manifests['LocalMachineTemplate demo-worker'].spec.template.spec
const topology = (env: ManagementEnv, change: object) =>
  env.client.patch(Cluster, demo, { type: 'merge', body: { spec: { topology: change } } })
/** Returns the first object of a kind whose name contains a text. */
const findObject = async <T extends KubeObject>(
  env: ManagementEnv,
  kind: Parameters<typeof env.client.list<T>>[0],
  part = '',
) => {
  const { items } = await env.client.list(kind, { namespace: 'default' })
  return items.find(({ metadata }) => metadata.name.includes(part))!
}

/** Seconds after which a blocking hook is called again. */
const SecondsBetweenCalls = 30

const keyOfControlPlane = { namespace: 'default', name: 'demo-control-plane' }
/** Sets the Ready condition of an object of a provider to False in even minutes, and to True in odd ones. */
const changeReady = async (env: ManagementEnv, kind: Kind<any>, key: ObjectKey, minute: number) => {
  const { status } = await env.client.get(kind, key)
  const others = (status.conditions ?? []).filter(({ type }: { type: string }) => type !== 'Ready')
  const ready = { type: 'Ready', status: minute % 2 === 0 ? 'False' : 'True', reason: 'Changing', message: '' }
  const conditions = [...others, { ...ready, lastTransitionTime: timestamp(env.clock.now()) }]
  await env.client.patch(kind, key, { type: 'merge', body: { status: { conditions } } }, { subresource: 'status' })
}

const inputs: readonly FailingInput[] = [
  // Classes and their templates
  {
    name: 'a patch that removes a missing path',
    change: (manifests) =>
      classOf(manifests).patches.push(patchOfWorkers([{ op: 'remove', path: '/spec/template/spec/missing' }])),
  },
  {
    name: 'a patch with a value that the schema of the template rejects',
    change: (manifests) =>
      classOf(manifests).patches.push(patchOfWorkers([{ op: 'add', path: '/spec/template/spec/simulated', value: 'text' }])),
  },
  {
    name: 'a patch with a field that the schema of the template does not have',
    change: (manifests) =>
      classOf(manifests).patches.push(patchOfWorkers([{ op: 'add', path: '/spec/template/spec/colour', value: 'red' }])),
  },
  {
    name: 'a patch with a duration that the provider cannot parse',
    change: (manifests) =>
      classOf(manifests).patches.push(
        patchOfWorkers([{ op: 'add', path: '/spec/template/spec/simulated/nodeDelay', value: 'soon' }]),
      ),
  },
  {
    name: 'a patch whose Go template fails when it is rendered',
    change: (manifests) =>
      classOf(manifests).patches.push(
        patchOfWorkers([
          {
            op: 'add',
            path: '/spec/template/spec/simulated/nodeDelay',
            valueFrom: { template: '{{ .builtin.cluster.name.first }}' },
          },
        ]),
      ),
  },
  {
    name: 'a patch whose result is not YAML',
    change: (manifests) =>
      classOf(manifests).patches.push(
        patchOfWorkers([{ op: 'add', path: '/spec/template/spec/simulated/nodeDelay', valueFrom: { template: '{a: [' } }]),
      ),
  },
  ...[
    'LocalClusterTemplate demo',
    'LocalControlPlaneTemplate demo',
    'LocalMachineTemplate demo-control-plane',
    'LocalMachineTemplate demo-worker',
    'LocalBootstrapConfigTemplate demo-worker',
  ].map((template): FailingInput => ({ name: `a missing ${template}`, change: (manifests) => void delete manifests[template] })),
  {
    name: 'a template of a kind that has no CRD',
    change: (manifests) =>
      (classOf(manifests).workers.machineDeployments[0].bootstrap.templateRef = refOf('NoSuchTemplate', 'x')),
  },
  { name: 'a missing ClusterClass', change: (manifests) => void delete manifests['ClusterClass demo'] },
  {
    name: 'a naming template that renders an invalid name for this Cluster',
    retries: { objects: 1, writes: 4 },
    change: (manifests) =>
      (classOf(manifests).workers.machineDeployments[0].naming.template =
        '{{ .cluster.name }}-{{ if eq .cluster.name "demo" }}X{{ end }}{{ .random }}'),
  },
  {
    name: 'a naming template that renders the same name for two MachineDeployments',
    change: (manifests) => (classOf(manifests).workers.machineDeployments[0].naming.template = '{{ .cluster.name }}-same'),
  },
  {
    name: 'a variable that becomes required after the Cluster was created',
    later: (env) =>
      changeClass(env, (spec) =>
        spec.variables.push({ name: 'zone', required: true, schema: { openAPIV3Schema: { type: 'string' } } }),
      ),
  },
  {
    name: 'a rejected removal of a worker class that a Cluster uses',
    later: (env) => changeClass(env, (spec) => (spec.workers.machineDeployments = [])).catch(() => {}),
  },
  {
    name: 'a template that is deleted while it is used',
    later: (env) => env.client.delete(LocalMachineTemplate, { namespace: 'default', name: 'demo-worker' }),
  },

  // Existing objects with conflicting names
  {
    name: 'an infrastructure cluster of the same name that belongs to another Cluster',
    before: (env) => env.client.create(LocalCluster, { metadata: { ...demo, ownerReferences: [otherOwner] }, spec: {} }),
  },
  {
    name: 'a MachineDeployment of the same name that belongs to another Cluster',
    retries: { objects: 1, writes: 2 },
    before: (env) =>
      env.client.create(MachineDeployment, {
        metadata: { namespace: 'default', name: 'demo-steady' },
        spec: machineDeployment('other', 'demo-worker'),
      }),
  },
  {
    name: 'a kubeconfig Secret of the same name that contains garbage',
    before: (env) =>
      env.client.create(Secret, { metadata: { namespace: 'default', name: 'demo-kubeconfig' }, data: { value: 'Z2FyYmFnZQ==' } }),
  },

  // Writes that are denied
  { name: 'a policy that denies new Machines', before: (env) => deny(env, 'cluster.x-k8s.io', ['machines'], ['CREATE']) },
  { name: 'a policy that denies new MachineSets', before: (env) => deny(env, 'cluster.x-k8s.io', ['machinesets'], ['CREATE']) },
  {
    name: 'a policy that denies updates of MachineDeployments',
    before: (env) => deny(env, 'cluster.x-k8s.io', ['machinedeployments'], ['UPDATE']),
  },
  {
    name: 'a policy that denies status updates of MachineSets',
    before: (env) => deny(env, 'cluster.x-k8s.io', ['machinesets/status'], ['UPDATE']),
  },
  {
    name: 'a policy that denies new infrastructure machines',
    before: (env) => deny(env, 'infrastructure.capstan.dev', ['localmachines'], ['CREATE']),
  },
  {
    name: 'a policy that denies new bootstrap configs',
    before: (env) => deny(env, 'bootstrap.capstan.dev', ['localbootstrapconfigs'], ['CREATE']),
  },
  { name: 'a policy that denies new Secrets', before: (env) => deny(env, '', ['secrets'], ['CREATE']) },
  {
    name: 'a policy that denies the deletion of Machines',
    before: (env) => deny(env, 'cluster.x-k8s.io', ['machines'], ['DELETE']),
    later: (env) => topology(env, { version: 'v1.36.1' }),
  },
  {
    name: 'a quota of one Machine',
    // Both MachineSets are retried. As in upstream, each retry creates a bootstrap config and an infrastructure machine before the Machine,
    // changes the managedFields of both, deletes both, and reports the name of the rejected Machine in the status of the MachineSet and its
    // MachineDeployment.
    retries: { objects: 2, writes: 8 },
    before: (env) => quota(env, { 'count/machines.cluster.x-k8s.io': '1' }),
  },
  {
    name: 'a quota of one infrastructure machine',
    // As with the quota of one Machine, but each retry creates and deletes only the bootstrap config.
    retries: { objects: 2, writes: 5 },
    before: (env) => quota(env, { 'count/localmachines.infrastructure.capstan.dev': '1' }),
  },

  {
    name: 'a webhook that denies new Machines',
    webhooks: denyingWebhooks,
    before: (env) => registerWebhook(env, 'cluster.x-k8s.io', ['machines'], ['CREATE']),
  },
  {
    name: 'a webhook that denies updates of Clusters',
    webhooks: denyingWebhooks,
    before: (env) => registerWebhook(env, 'cluster.x-k8s.io', ['clusters'], ['UPDATE']),
  },
  {
    name: 'a webhook that denies status updates of MachineDeployments',
    webhooks: denyingWebhooks,
    before: (env) => registerWebhook(env, 'cluster.x-k8s.io', ['machinedeployments/status'], ['UPDATE']),
  },
  {
    name: 'a webhook that denies the deletion of infrastructure machines',
    // After 15 minutes the Machine, the control plane and the Cluster report, once each, that the deletion takes long.
    changes: / since more than 15m/,
    writesOnce: 3,
    webhooks: denyingWebhooks,
    before: (env) => registerWebhook(env, 'infrastructure.capstan.dev', ['localmachines'], ['DELETE']),
    later: (env) => topology(env, { version: 'v1.36.1' }),
  },
  {
    name: 'a webhook that times out for new Machines',
    webhooks: unresponsiveWebhooks,
    before: (env) => registerWebhook(env, 'cluster.x-k8s.io', ['machines'], ['CREATE']),
  },
  {
    name: 'a webhook that times out for status updates of MachineSets',
    webhooks: unresponsiveWebhooks,
    before: (env) => registerWebhook(env, 'cluster.x-k8s.io', ['machinesets/status'], ['UPDATE']),
  },
  {
    name: 'a webhook that times out for new infrastructure machines',
    webhooks: unresponsiveWebhooks,
    before: (env) => registerWebhook(env, 'infrastructure.capstan.dev', ['localmachines'], ['CREATE']),
  },

  // Providers
  {
    name: 'an infrastructure cluster that is never provisioned',
    change: (manifests) =>
      (manifests['LocalClusterTemplate demo'].spec.template.spec = { simulated: { provisioningDelay: '1000h' } }),
  },
  {
    name: 'a control plane that is never initialized',
    change: (manifests) =>
      (manifests['LocalControlPlaneTemplate demo'].spec.template.spec = { simulated: { initializationDelay: '1000h' } }),
  },
  {
    name: 'Machines that are never provisioned',
    change: (manifests) => (workerOf(manifests).simulated.provisioningDelay = '1000h'),
  },
  {
    name: 'Machines whose Node never appears',
    change: (manifests) => (workerOf(manifests).simulated.failure = { at: 'node', message: 'no kubelet' }),
  },
  {
    name: 'Machines whose Node is NotReady',
    change: (manifests) => (workerOf(manifests).simulated.failure = { at: 'kubelet', message: 'no CNI' }),
  },
  {
    name: 'an infrastructure cluster whose status.initialization.provisioned becomes false',
    later: async (env) => {
      for (const provisioned of [false, true, false, true, false])
        await env.client.patch(
          LocalCluster,
          demo,
          { type: 'merge', body: { status: { initialization: { provisioned } } } },
          { subresource: 'status' },
        )
    },
  },
  {
    name: 'an infrastructure cluster whose Ready condition changes every minute',
    writesPerMinute: 3,
    during: (env, minute) => changeReady(env, LocalCluster, demo, minute),
  },
  {
    name: 'an infrastructure machine whose Ready condition changes every minute',
    // Each change updates the status of the infrastructure machine, the Machine, the MachineSet, the MachineDeployment and the Cluster, of some of them twice.
    writesPerMinute: 7,
    during: async (env, minute) => changeReady(env, LocalMachine, keyOf(await findObject(env, LocalMachine, 'steady')), minute),
  },
  {
    name: 'a bootstrap config whose Ready condition changes every minute',
    // Each change updates the status of the bootstrap config, the Machine, the MachineSet, the MachineDeployment and the Cluster, of some of them twice.
    writesPerMinute: 7,
    during: async (env, minute) =>
      changeReady(env, LocalBootstrapConfig, keyOf(await findObject(env, LocalBootstrapConfig, 'steady')), minute),
  },
  {
    name: 'a control plane that reports another number of replicas every minute',
    writesPerMinute: 2,
    during: (env, minute) =>
      env.client.patch(
        LocalControlPlane,
        keyOfControlPlane,
        { type: 'merge', body: { status: { readyReplicas: minute % 2, availableReplicas: minute % 2 } } },
        { subresource: 'status' },
      ),
  },
  {
    name: 'an infrastructure machine that is deleted by a user',
    later: async (env) => env.client.delete(LocalMachine, keyOf(await findObject(env, LocalMachine, 'steady'))),
  },
  {
    name: 'a bootstrap config that is deleted by a user',
    later: async (env) => env.client.delete(LocalBootstrapConfig, keyOf(await findObject(env, LocalBootstrapConfig, 'steady'))),
  },
  {
    name: 'a kubeconfig Secret that is deleted by a user',
    later: (env) => env.client.delete(Secret, { namespace: 'default', name: 'demo-kubeconfig' }),
  },
  {
    name: 'a control plane that is deleted by a user',
    later: (env) => env.client.delete(LocalControlPlane, { namespace: 'default', name: 'demo-control-plane' }),
  },

  // Deletions that do not end
  {
    name: 'a Machine with a pre-drain hook that is never removed',
    later: async (env) => {
      const key = keyOf(await findObject(env, Machine, 'steady'))
      const annotations = { 'pre-drain.delete.hook.machine.cluster.x-k8s.io/x': 'y' }
      await env.client.patch(Machine, key, { type: 'merge', body: { metadata: { annotations } } })
      await env.client.delete(Machine, key)
    },
  },
  {
    name: 'a foreign finalizer on the infrastructure of a deleted Cluster',
    later: async (env) => {
      const finalizers = [...((await env.client.get(LocalCluster, demo)).metadata.finalizers ?? []), 'example.com/x']
      await env.client.patch(LocalCluster, demo, { type: 'merge', body: { metadata: { finalizers } } })
      await env.client.delete(Cluster, demo)
    },
  },

  // Objects of users
  {
    name: 'a MachineDeployment whose template does not exist',
    later: (env) =>
      env.client.create(MachineDeployment, {
        metadata: { namespace: 'default', name: 'mine' },
        spec: machineDeployment('demo', 'missing'),
      }),
  },
  {
    name: 'a MachineDeployment of a Cluster that does not exist',
    later: (env) =>
      env.client.create(MachineDeployment, {
        metadata: { namespace: 'default', name: 'mine' },
        spec: machineDeployment('missing', 'demo-worker'),
      }),
  },
  {
    name: 'a MachineHealthCheck that finds every control plane Machine unhealthy',
    later: (env) =>
      env.client.create(MachineHealthCheck, {
        metadata: { namespace: 'default', name: 'mine' },
        spec: {
          clusterName: 'demo',
          selector: { matchLabels: { 'cluster.x-k8s.io/control-plane': '' } },
          checks: {
            nodeStartupTimeoutSeconds: 60,
            unhealthyNodeConditions: [{ type: 'Ready', status: 'True', timeoutSeconds: 60 }],
          },
        },
      } as never),
  },
  {
    name: 'a ClusterResourceSet whose ConfigMap contains no manifest',
    later: async (env) => {
      await env.client.create(ConfigMap, { metadata: { namespace: 'default', name: 'garbage' }, data: { a: 'a: [' } })
      await env.client.create(ClusterResourceSet, {
        metadata: { namespace: 'default', name: 'mine' },
        spec: {
          clusterSelector: { matchLabels: { a: 'b' } },
          resources: [{ kind: 'ConfigMap', name: 'garbage' }],
          strategy: 'Reconcile',
        },
      })
      await env.client.patch(Cluster, demo, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } })
    },
  },

  // Extensions
  {
    name: 'BeforeClusterCreate that blocks with another message at each call',
    runtime: { [BeforeClusterCreate.name]: ({ nth }) => ({ wait: SecondsBetweenCalls, message: `call ${nth}` }) },
    changes: /call \d+/,
    writesPerCall: 2,
  },
  {
    name: 'BeforeClusterUpgrade that blocks with another message at each call',
    runtime: { [BeforeClusterUpgrade.name]: ({ nth }) => ({ wait: SecondsBetweenCalls, message: `call ${nth}` }) },
    changes: /call \d+/,
    writesPerCall: 3,
    later: (env) => topology(env, { version: 'v1.36.1' }),
  },
  {
    name: 'BeforeClusterDelete that blocks',
    runtime: { [BeforeClusterDelete.name]: () => ({ wait: SecondsBetweenCalls, message: 'backup first' }) },
    writesPerCall: 1,
    later: (env) => env.client.delete(Cluster, demo),
  },
  {
    name: 'GeneratePatches that fails',
    change: externalPatch,
    runtime: { [GeneratePatches.name]: ({ nth }) => ({ response: { status: 'Failure', message: `failure ${nth}` } }) },
  },
  {
    name: 'GeneratePatches with other patches in each call',
    change: externalPatch,
    runtime: {
      [GeneratePatches.name]: ({ request, nth }) => ({ response: { items: patched(request, `${nth}s`) } }),
      [ValidateTopology.name]: () => ({ response: {} }),
    },
  },
  {
    name: 'GeneratePatches with a patch that cannot be applied',
    change: externalPatch,
    runtime: { [GeneratePatches.name]: ({ request }) => ({ response: { items: patched(request, '1s', '/spec/none/at/all') } }) },
  },
  {
    name: 'ValidateTopology that fails',
    change: externalPatch,
    runtime: {
      [GeneratePatches.name]: () => ({ response: { items: [] } }),
      [ValidateTopology.name]: ({ nth }) => ({ response: { status: 'Failure', message: `failure ${nth}` } }),
    },
  },
]

/** Writes of the controllers. */
interface Writes {
  /** Wraps the transport of the controllers to record its writes. */
  readonly between: (transport: Transport) => Transport
  /** Writes that the server stored, without Events. */
  stored: string[]
  /** Writes that the server rejected. */
  rejected: string[]
  /** Created and changed Events. */
  events: string[]
}

/** Number of writes after which further writes are rejected: controllers that write in a loop would prevent the clock from advancing. */
const MaxWrites = 600

function countWrites(): Writes {
  const writes: Writes = {
    stored: [],
    rejected: [],
    events: [],
    between: (transport) =>
      withSend(transport, async (request, signal) => {
        const { verb, plural, name = '', subresource = '', options } = request
        if (verb === 'get' || verb === 'list' || options?.dryRun) return transport.send(request, signal)
        if (writes.stored.length + writes.events.length >= MaxWrites) throw new StatusError('TooManyRequests', 'too many writes')
        const text = `${verb} ${plural}/${name} ${subresource}`
        try {
          const response = await transport.send(request, signal)
          ;(plural === 'events' ? writes.events : writes.stored).push(text)
          return response
        } catch (err) {
          writes.rejected.push(text)
          throw err
        }
      }),
  }
  return writes
}

interface AnyCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}
interface AnyStatus {
  readonly conditions?: readonly AnyCondition[]
  readonly deprecated?: { readonly v1beta1?: { readonly conditions?: readonly AnyCondition[] } }
  readonly v1beta2?: { readonly conditions?: readonly AnyCondition[] }
}

/**
 * Texts of each condition, current or deprecated (v1beta1), in the order in which the server stored them. A text that returns after another
 * is listed again.
 */
class ConditionTexts {
  readonly #texts = new Map<string, string[]>()

  add({ kind, metadata, status }: KubeObject & { readonly status?: AnyStatus }): void {
    const { conditions, deprecated, v1beta2 } = status ?? {}
    const conditionsByField = {
      conditions,
      'v1beta1.conditions': deprecated?.v1beta1?.conditions,
      'v1beta2.conditions': v1beta2?.conditions,
    }
    for (const [field, all] of Object.entries(conditionsByField))
      for (const { type, status: value, reason = '', message = '' } of all ?? []) {
        const condition = `${kind}/${metadata.name} ${field} ${type}`
        const text = withoutSuffixes(`${value} ${reason}: ${message}`)
        const texts = this.#texts.get(condition) ?? []
        if (texts.at(-1) !== text) texts.push(text)
        this.#texts.set(condition, texts)
      }
  }

  /** Returns the conditions whose texts changed, apart from parts that match `ignored`. */
  changed(ignored: RegExp = /^$/): Record<string, readonly string[]> {
    const comparable = (text: string) => text.replace(ignored, '')
    return Object.fromEntries(
      [...this.#texts].filter(([, [first, ...others]]) => others.some((text) => comparable(text) !== comparable(first!))),
    )
  }
}

/** Replaces random suffixes of names: a retry creates objects with other names. */
const withoutSuffixes = (text: string): string => text.replace(/-[a-z0-9]{5}\b/g, '-xxxxx')

let env: ManagementEnv
afterEach(() => env.close())

/** Returns all objects of Cluster API's and Capstan's kinds, and all Secrets, ConfigMaps and Events. */
async function objects(): Promise<KubeObject[]> {
  const kinds = [...manifestKinds.values(), Secret, ConfigMap, Event]
  const lists = await Promise.all(kinds.map((kind) => env.client.list(kind as typeof Cluster, {})))
  return lists.flatMap((list) => list.items)
}

/** Minutes of the measurement. */
const Measured = 30
/** Retries in the measurement of each object whose retries write. */
const RetriesOfObject = 2
/** Maximum number of rejected writes in the measurement. */
const MaxRejected = 12

describe('the controllers do not write in a loop after', () => {
  for (const input of inputs)
    test(input.name, async () => {
      const { runtime = {}, change, before, later, during, webhooks } = input
      const { writesPerCall = 0, retries = { objects: 0, writes: 0 }, writesPerMinute = 0, writesOnce = 0, changes } = input
      const writes = countWrites()
      env = await managementEnv({
        runtime: scriptedRuntime(runtime),
        between: writes.between,
        ...(webhooks ? { webhooks, patience: 5 } : {}),
      })
      await before?.(env)
      const manifests = { ...load('class.yaml'), ...load('cluster.yaml') }
      change?.(manifests)
      await createAll(env, manifests)
      await env.advance(minutes(1))
      await later?.(env)
      await env.advance(minutes(10))
      const objectsBefore = await objects()
      const texts = new ConditionTexts()
      for (const object of objectsBefore) texts.add(object)
      const [store] = env.stores.all()
      const stopRecording = store!.subscribe(undefined, ({ object }) => object && texts.add(object as KubeObject))
      ;[writes.stored, writes.rejected, writes.events] = [[], [], []]
      for (let minute = 0; minute < Measured; minute++) {
        await during?.(env, minute)
        await env.advance(minutes(1))
      }
      stopRecording()
      const objectsAfter = await objects()
      const isEvent = ({ kind }: KubeObject) => kind === 'Event'
      const calls = (Measured * 60) / SecondsBetweenCalls
      const writesOfRetries = RetriesOfObject * retries.objects * retries.writes
      const maxWrites = writesPerCall * calls + writesOfRetries + writesPerMinute * Measured + writesOnce
      expect(writes.stored.length).toBeLessThanOrEqual(maxWrites)
      expect(writes.rejected.length).toBeLessThanOrEqual(MaxRejected)
      expect(writes.events.length).toBeLessThanOrEqual(2 * writes.rejected.length + writesOfRetries)
      expect(objectsAfter.filter((object) => !isEvent(object)).length).toBe(
        objectsBefore.filter((object) => !isEvent(object)).length,
      )
      expect(objectsAfter.filter(isEvent).length).toBeLessThanOrEqual(objectsBefore.filter(isEvent).length + writes.events.length)
      // Conditions that summarize a changing field change with it.
      if (writesPerMinute === 0) expect(texts.changed(changes)).toEqual({})
    }, 60_000)
})
