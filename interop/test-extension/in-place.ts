/**
 * In-place updates by upstream's test extension. The extension can decode only the kinds of the kubeadm and Docker providers in requests of
 * CanUpdateMachine. Therefore the suite itself sends it such requests, and checks which changes its patches do not cover. The extension
 * accepts requests of UpdateMachine for any machine, so Capstan's core sends them for a machine of the local provider.
 */
import {
  CanUpdateMachine,
  ExtensionConfig,
  Machine,
  MachineControlPlaneLabel,
  type RequestOf,
  type ResponseOf,
  uncoveredOfMachine,
  UpdateInProgressAnnotation,
} from '@capstan/api'
import { callServer, httpsHookTransport } from '@capstan/extension'
import { type Client, getCondition, keyOf, systemClock } from '@capstan/kube'
import type { Checks } from '../processes/capstan-process.ts'
import { until } from '../shared/until.ts'

const inDefault = { namespace: 'default' }

type MachineStates = Pick<RequestOf<typeof CanUpdateMachine>, 'current' | 'desired'>
type Objects = MachineStates['current']

/** Calls CanUpdateMachine for a Machine with KubeadmConfig and DevMachine, and checks which changes the patches do not cover. */
export async function checkCoverage(url: string, caBundle: string, checks: Checks): Promise<void> {
  const transport = httpsHookTransport()
  const uncovered = async (change: Change) => {
    const request: MachineStates = { current: objects({}), desired: objects(change) }
    const call = { server: { url, caBundle }, request, timeoutSeconds: 10, transport, clock: systemClock }
    const { handler, response } = await callServer(CanUpdateMachine, call)
    const typedResponse = response as ResponseOf<typeof CanUpdateMachine>
    return typedResponse.status === 'Success' ? uncoveredOfMachine(request, typedResponse, handler) : [typedResponse.message]
  }
  try {
    for (const [description, change, expected] of changes) {
      const uncoveredFields = await uncovered(change)
      checks.check(`in place, ${description}`, JSON.stringify(uncoveredFields) === JSON.stringify(expected), uncoveredFields)
    }
  } finally {
    transport.close()
  }
}

/** Fields of the desired objects that differ from the current ones. */
interface Change {
  readonly version?: string
  readonly files?: readonly object[]
  readonly timeout?: string
  readonly image?: string
}

const files = [{ path: '/etc/motd', content: 'hello', owner: 'root:root' }]
/** Description, change, and the messages about fields that the patches do not cover. */
const changes: readonly [string, Change, readonly string[]][] = [
  ['the patches cover a change of the version', { version: 'v1.36.1' }, []],
  ['the patches cover changes of files and a timeout', { files, timeout: '5m0s' }, []],
  [
    'fields unknown to the extension are not covered',
    { version: 'v1.36.1', image: 'kindest/node:v1.36.1' },
    ['DevMachine cannot be updated in-place: spec.backend.docker.customImage'],
  ],
]

/** Returns a Machine, its KubeadmConfig and its DevMachine. */
function objects({ version = 'v1.36.0', files, timeout = '3m0s', image }: Change): Objects {
  const metadata = { name: 'm1', namespace: 'default' }
  const ref = (apiGroup: string, kind: string) => ({ apiGroup, kind, name: 'm1' })
  const docker = { bootstrapTimeout: timeout, ...(image === undefined ? {} : { customImage: image }) }
  const all = {
    machine: {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Machine',
      metadata,
      spec: {
        clusterName: 'demo',
        version,
        bootstrap: { configRef: ref('bootstrap.cluster.x-k8s.io', 'KubeadmConfig') },
        infrastructureRef: ref('infrastructure.cluster.x-k8s.io', 'DevMachine'),
      },
    },
    bootstrapConfig: {
      apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
      kind: 'KubeadmConfig',
      metadata,
      spec: { clusterConfiguration: { certificatesDir: '/etc/kubernetes/pki' }, ...(files && { files }) },
    },
    infrastructureMachine: {
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
      kind: 'DevMachine',
      metadata,
      spec: { backend: { docker } },
    },
  }
  return all as unknown as Objects
}

/** Beginning of the message with which UpdateMachine fails while in-place updates are disabled in the settings of the extension. */
export const rejection = 'Unexpected call to UpdateMachine hook'

/**
 * Updates the control plane Machine of the Cluster `demo` in place. At the call, the settings of the extension must disable in-place updates,
 * so that UpdateMachine fails. Then this function enables them: UpdateMachine blocks, and completes later. At the end, it disables them again.
 */
export async function checkUpdate(client: Client, extensionConfig: string, checks: Checks): Promise<void> {
  const isControlPlane = ({ metadata }: Machine) => metadata.labels?.[MachineControlPlaneLabel] !== undefined
  const controlPlaneMachine = (machines: readonly Machine[]) => machines.find(isControlPlane)!
  const [key] = (await until(client, Machine, 'a control plane Machine', (all) => all.some(isControlPlane), inDefault))
    .filter(isControlPlane)
    .map(keyOf)
  const hasMessage = (message: string) => (machines: readonly Machine[]) =>
    getCondition(controlPlaneMachine(machines), 'Updating')?.message === message

  // The annotation is enough to start an update: the LocalControlPlane controller continues as after an interrupted start of an update.
  const body = { metadata: { annotations: { [UpdateInProgressAnnotation]: '' } } }
  await client.patch(Machine, key!, { type: 'merge', body })
  const failed = 'UpdateMachine hook failed: please check controller logs for errors'
  await until(client, Machine, 'the condition reports the failure', hasMessage(failed), inDefault)
  checks.check('a failed UpdateMachine is reported on the Machine', true)

  await setInPlaceUpdates(client, extensionConfig, true)
  const updatingMachines = await until(
    client,
    Machine,
    'the update is in progress',
    hasMessage('In-place update in progress: Extension is updating Machine'),
    inDefault,
  )
  checks.check(
    'the Machine is in phase Updating',
    controlPlaneMachine(updatingMachines).status?.phase === 'Updating',
    controlPlaneMachine(updatingMachines).status?.phase,
  )
  const updatedMachines = await until(
    client,
    Machine,
    'the update is complete',
    (machines) => getCondition(controlPlaneMachine(machines), 'Updating')?.status === 'False',
    inDefault,
  )
  const { annotations = {} } = controlPlaneMachine(updatedMachines).metadata
  const updateAnnotations = Object.keys(annotations).filter((name) => /in-place-updates|pending-hooks/.test(name))
  checks.check('the annotations of the update are removed when it is complete', updateAnnotations.length === 0, annotations)
  await setInPlaceUpdates(client, extensionConfig, false)
}

/**
 * Enables or disables in-place updates in the settings of the extension. Resolves when the extension was discovered with these settings.
 */
async function setInPlaceUpdates(client: Client, name: string, areEnabled: boolean): Promise<void> {
  const settings = { disableInPlaceUpdates: String(!areEnabled) }
  const { metadata } = await client.patch(ExtensionConfig, { name }, { type: 'merge', body: { spec: { settings } } })
  const hasDiscoveredSettings = ({ metadata: { uid }, status }: ExtensionConfig) =>
    uid === metadata.uid &&
    status?.conditions?.some(
      (condition) => condition.type === 'Discovered' && condition.observedGeneration === metadata.generation,
    ) === true
  await until(client, ExtensionConfig, 'the settings are discovered', (configs) => configs.some(hasDiscoveredSettings))
}
