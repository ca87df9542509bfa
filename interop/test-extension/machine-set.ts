/**
 * Upstream's test extension updates the Machine of a MachineDeployment in place: core calls the hook CanUpdateMachineSet with templates of the
 * kubeadm and Docker providers. Of these providers only the CustomResourceDefinitions are installed. This file writes the fields that the providers
 * would write for the one Machine, and registers its Node.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster, ExtensionConfig, Machine, MachineDeployment } from '@capstan/api'
import {
  type Client,
  createClient,
  CustomResourceDefinition,
  equal,
  Event,
  getCondition,
  type Input,
  isTrue,
  type KubeObject,
  Namespace,
  Node,
  Secret,
  systemClock,
  systemRandom,
  type UnknownObject,
  unknownKind,
} from '@capstan/kube'
import { httpsTransport, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import { parse } from 'yaml'
import type { Checks } from '../processes/capstan-process.ts'
import { moduleFolder } from '../shared/tools.ts'
import { until } from '../shared/until.ts'
import { modules } from '../upstream/managers.ts'

const namespace = 'in-place'
const clusterName = 'mixed'
const infrastructure = 'infrastructure.cluster.x-k8s.io'
const bootstrap = 'bootstrap.cluster.x-k8s.io'
const kindOf = (group: string, kind: string) =>
  unknownKind({ apiVersion: `${group}/v1beta2`, kind, plural: `${kind.toLowerCase()}s` })
const DevMachine = kindOf(infrastructure, 'DevMachine')
const DevMachineTemplate = kindOf(infrastructure, 'DevMachineTemplate')
const KubeadmConfig = kindOf(bootstrap, 'KubeadmConfig')
const KubeadmConfigTemplate = kindOf(bootstrap, 'KubeadmConfigTemplate')

/** Module, path prefix in the module, and plural names of upstream's CustomResourceDefinitions. */
const definitions = [
  [modules.core, `bootstrap/kubeadm/config/crd/bases/${bootstrap}`, ['kubeadmconfigs', 'kubeadmconfigtemplates']],
  [modules.test, `infrastructure/docker/config/crd/bases/${infrastructure}`, ['devmachines', 'devmachinetemplates']],
] as const

/**
 * Updates the Machine of a MachineDeployment in place. Then makes a change that the extension cannot apply, and checks that an event states the
 * reason. The class `demo` must exist in namespace `default`, and `clientConfig` must be that of the extension.
 */
export async function updateMachineSet(
  client: Client,
  clientConfig: { url: string; caBundle: string },
  checks: Checks,
): Promise<void> {
  await client.create(Namespace, { metadata: { name: namespace } })
  await client.create(ExtensionConfig, {
    metadata: { name: namespace },
    spec: {
      clientConfig,
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      settings: { extensionConfigName: namespace, defaultAllHandlersToBlocking: 'false' },
    },
  })
  for (const [module, pathPrefix, plurals] of definitions) {
    const folder = await moduleFolder('test-extension', module)
    for (const plural of plurals) {
      const crd = parse(readFileSync(join(folder, `${pathPrefix}_${plural}.yaml`), 'utf8')) as Input<CustomResourceDefinition>
      // The labels that upstream's kustomization sets.
      const labels = { ...crd.metadata.labels, 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta2' }
      await client.create(CustomResourceDefinition, { ...crd, metadata: { ...crd.metadata, labels } })
    }
  }
  const isServed = (crds: CustomResourceDefinition[]) =>
    crds
      .filter((crd) => crd.spec.group === infrastructure || crd.spec.group === bootstrap)
      .every((crd) => isTrue(crd, 'Established'))
  await until(client, CustomResourceDefinition, "upstream's CustomResourceDefinitions", isServed)

  await client.create(Cluster, {
    metadata: { namespace, name: clusterName },
    spec: { topology: { classRef: { name: 'demo', namespace: 'default' }, version: 'v1.36.0', controlPlane: { replicas: 1 } } },
  })
  // The extension decodes durations and encodes them again, as Go does: it would change "5m" to "5m0s".
  await createTemplates(client, 'first', { bootstrapTimeout: '5m0s', content: 'first' })
  await client.create(MachineDeployment, aDeployment())
  const runKubelet = await provideMachine(client)
  await runKubelet('v1.36.0')
  const isRunning = (machines: Machine[]) => machines.some((candidate) => isWorker(candidate) && isTrue(candidate, 'Available'))
  const before = (await until(client, Machine, 'a Machine of upstream kinds runs', isRunning, { namespace })).find(isWorker)
  console.log('a Machine of upstream kinds runs')

  await createTemplates(client, 'second', { bootstrapTimeout: '10m0s', content: 'second' })
  const spec = { version: 'v1.36.1', failureDomain: 'b', ...refs('second') }
  await client.patch(MachineDeployment, key, { type: 'merge', body: { spec: { template: { spec } } } })
  const inProgress = 'In-place update in progress: Extension is updating Machine'
  const isUpdating = (candidate: Machine) => getCondition(candidate, 'Updating')?.message === inProgress
  await until(client, Machine, 'the extension is updating the Machine', (machines) => machines.some(isUpdating), { namespace })
  checks.check('a Machine that is updated in place has the message of the extension in its condition', true)
  await runKubelet('v1.36.1')
  const isUpToDate = ({ status }: MachineDeployment) => status?.upToDateReplicas === 1 && status.availableReplicas === 1
  await until(client, MachineDeployment, 'the update is complete', (all) => all.some(isUpToDate), { namespace })
  console.log('the Machine is updated in place')

  const [after, ...others] = (await client.list(Machine, { namespace })).items.filter(isWorker)
  checks.check('the Machine is not replaced', others.length === 0 && after?.metadata.uid === before?.metadata.uid, after)
  checks.check(
    'the Machine has the desired version and failure domain',
    after?.spec.version === 'v1.36.1' && after.spec.failureDomain === 'b',
    after?.spec,
  )
  const machineKey = { namespace, name: after?.metadata.name ?? '' }
  const machineSpec = specOf(await client.get(DevMachine, machineKey))
  const expectedSpec = { backend: { docker: { bootstrapTimeout: '10m0s' } }, providerID: `dev:///${machineKey.name}` }
  checks.check(
    'the infrastructure machine has the desired spec, and keeps its providerID',
    equal(machineSpec, expectedSpec),
    machineSpec,
  )
  const configSpec = specOf(await client.get(KubeadmConfig, machineKey))
  checks.check('the bootstrap config has the desired files', equal(configSpec.files, files('second')), configSpec)

  // The extension cannot update `customImage`, so the Machine is replaced. An event must state the reason.
  await client.create(DevMachineTemplate, devTemplate('third', { bootstrapTimeout: '10m0s', customImage: 'another' }))
  const { infrastructureRef } = refs('third')
  await client.patch(MachineDeployment, key, { type: 'merge', body: { spec: { template: { spec: { infrastructureRef } } } } })
  const expectedReason = 'DevMachineTemplate cannot be updated in-place: spec.template.spec.backend.docker.customImage'
  const isReported = ({ reason, message }: Event) =>
    reason === 'InPlaceUpdateNotPossible' && message?.endsWith(expectedReason) === true
  await until(client, Event, 'the event with the reason', (events) => events.some(isReported), { namespace })
  checks.check('an event names the field that the extension does not cover', true)
}

const key = { namespace, name: 'workers' }
const isWorker = ({ metadata }: Machine): boolean => metadata.labels?.['cluster.x-k8s.io/deployment-name'] === key.name

const refs = (name: string) => ({
  infrastructureRef: { apiGroup: infrastructure, kind: 'DevMachineTemplate', name },
  bootstrap: { configRef: { apiGroup: bootstrap, kind: 'KubeadmConfigTemplate', name } },
})

const aDeployment = () => ({
  metadata: key,
  spec: {
    clusterName,
    replicas: 1,
    selector: { matchLabels: { app: 'workers' } },
    rollout: { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
    template: {
      metadata: { labels: { app: 'workers' } },
      spec: { clusterName, version: 'v1.36.0', failureDomain: 'a', ...refs('first') },
    },
  },
})

const files = (content: string) => [{ path: '/etc/motd', content }]
const devTemplate = (name: string, docker: object) =>
  ({ metadata: { namespace, name }, spec: { template: { spec: { backend: { docker } } } } }) as unknown as Input<UnknownObject>

async function createTemplates(
  client: Client,
  name: string,
  fields: { bootstrapTimeout: string; content: string },
): Promise<void> {
  await client.create(DevMachineTemplate, devTemplate(name, { bootstrapTimeout: fields.bootstrapTimeout }))
  const spec = {
    template: { spec: { files: files(fields.content), joinConfiguration: { nodeRegistration: { name: 'worker' } } } },
  }
  await client.create(KubeadmConfigTemplate, { metadata: { namespace, name }, spec } as unknown as Input<UnknownObject>)
}

/**
 * Acts as upstream's bootstrap and infrastructure provider for the one Machine, and as the kubelet that registers its Node.
 *
 * @returns a function that reports a kubelet version in the status of the Node
 */
async function provideMachine(client: Client): Promise<(version: string) => Promise<unknown>> {
  const [devMachine] = await until(client, DevMachine, 'a DevMachine', (machines) => machines.length === 1, { namespace })
  const machineKey = { namespace, name: devMachine!.metadata.name }
  const providerID = `dev:///${machineKey.name}`
  const statusPatch = (status: object) => ({ type: 'merge' as const, body: { status } })
  await client.patch(DevMachine, machineKey, { type: 'merge', body: { spec: { providerID } } }, { fieldManager: 'capd' })
  await client.patch(DevMachine, machineKey, statusPatch({ initialization: { provisioned: true } }), { subresource: 'status' })
  const bootstrapped = { initialization: { dataSecretCreated: true }, dataSecretName: 'made-by-hand' }
  await client.patch(KubeadmConfig, machineKey, statusPatch(bootstrapped), { subresource: 'status' })

  const kubeconfigName = `${clusterName}-kubeconfig`
  await until(client, Secret, 'the kubeconfig', (secrets) => secrets.some(({ metadata }) => metadata.name === kubeconfigName), {
    namespace,
  })
  await until(
    client,
    Cluster,
    'a control plane',
    ([cluster]) => cluster !== undefined && isTrue(cluster, 'ControlPlaneInitialized'),
    {
      namespace,
    },
  )
  const secret = await client.get(Secret, { namespace, name: kubeconfigName })
  const access = await resolveKubeconfig(parseKubeconfig(Buffer.from(secret.data!['value']!, 'base64').toString()))
  const workload = createClient(httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: 'interop' }))
  await workload.create(Node, { metadata: { name: machineKey.name }, spec: { providerID } })
  const conditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
  }))
  return (version) => {
    const patch = statusPatch({ conditions, nodeInfo: { kubeletVersion: version } })
    return workload.patch(Node, { name: machineKey.name }, patch, { subresource: 'status' })
  }
}

const specOf = (object: KubeObject): Record<string, unknown> => (object as unknown as { spec: Record<string, unknown> }).spec
