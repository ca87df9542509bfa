/**
 * Cases in which hooks of a runtime extension block, fail, patch, and update in place.
 * Every case does the same with upstream's core and with Capstan's, and compares the objects of both sides after each step (`settle`).
 */
import {
  Cluster,
  ClusterClass,
  ExtensionConfig,
  Machine,
  MachineDeployment,
  OkToDeleteAnnotation,
  PendingHooksAnnotation,
  UpdateInProgressAnnotation,
} from '@capstan/api'
import { fail, holdFor, proceedNow, proceedWith } from '@capstan/extension'
import { clusterName, machineDeployment } from '../objects.ts'
import type { ScriptedResponse } from '../../runtime-extension/extension-host.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { version } from './machine-deployment.ts'
import { stub } from '../stub-kinds.ts'
import { connected, createReadyCluster, createReadyMachine, isGone } from './machine.ts'
import { createWorkerTemplates } from './machine-set.ts'
import { aClass, aCluster, createTopology, isUpgraded, createTemplates, topology, worker, workers } from './topology.ts'

const blocked = (hook: string) => holdFor(1, `blocked by ${hook}`)
const failed = (hook: string) => fail(`failed by ${hook}`)

/** BeforeClusterCreate of a new Cluster blocks or fails. */
const beforeCreate =
  (respond: (hook: string) => ScriptedResponse): Case =>
  async (twin) => {
    await twin.registerExtension()
    twin.setResponse('BeforeClusterCreate', () => respond('BeforeClusterCreate'))
    await createTemplates(twin)
    await twin.create(ClusterClass, aClass())
    await twin.settle('the class is reconciled')
    await twin.startWorkload(clusterName)
    await twin.create(Cluster, aCluster())
    await twin.settle('no object of the topology is created')
    twin.setResponse('BeforeClusterCreate', undefined)
    await twin.settle('the objects of the topology are created', connected)
  }

const afterInitialized =
  (respond: (hook: string) => ScriptedResponse): Case =>
  async (twin) => {
    await twin.registerExtension()
    twin.setResponse('AfterControlPlaneInitialized', () => respond('AfterControlPlaneInitialized'))
    await createTopology(twin)
    twin.setResponse('AfterControlPlaneInitialized', undefined)
    await twin.touch(Cluster, clusterName)
    await twin.settle('AfterControlPlaneInitialized proceeds')
  }

/** One hook blocks or fails during an upgrade. */
const upgrade =
  (hook: string, respond: (hook: string) => ScriptedResponse): Case =>
  async (twin) => {
    await twin.registerExtension()
    await createTopology(twin)
    twin.setResponse(hook, () => respond(hook))
    await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
    await twin.settle('the upgrade does not continue')
    twin.setResponse(hook, undefined)
    await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
  }

/** Changes workers while a hook blocks the first step of an upgrade. */
const workersWhileBlocked: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin)
  twin.setResponse('BeforeControlPlaneUpgrade', () => blocked('BeforeControlPlaneUpgrade'))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the upgrade is blocked')
  await twin.patch(Cluster, clusterName, workers(worker('a', { replicas: 2 })))
  await twin.settle('workers are scaled up while the hook blocks')
  await twin.delete(Machine, ([first]) => first)
  await twin.settle('a deleted Machine is replaced while the hook blocks')
}

/** A second upgrade is requested while the last hook of the first upgrade blocks. */
const secondUpgrade: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin)
  twin.setResponse('AfterClusterUpgrade', () => blocked('AfterClusterUpgrade'))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the Cluster is upgraded, and the last hook blocks', isUpgraded('v1.35.0'))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.36.0' }))
  await twin.settle('another upgrade is rejected')
}

const beforeDelete =
  (respond: (hook: string) => ScriptedResponse): Case =>
  async (twin) => {
    await twin.registerExtension()
    await createTopology(twin)
    twin.setResponse('BeforeClusterDelete', () => respond('BeforeClusterDelete'))
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is not deleted')
    twin.setResponse('BeforeClusterDelete', undefined)
    await twin.settle('the Cluster is deleted', isGone('Cluster'))
  }

/** The ExtensionConfig is deleted while the extension blocks an upgrade. */
const extensionRemoved: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin)
  twin.setResponse('BeforeClusterUpgrade', () => blocked('BeforeClusterUpgrade'))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the upgrade is blocked')
  await twin.runOnBoth('delete the ExtensionConfig', async (client) => {
    await client.delete(ExtensionConfig, { name: twin.namespace })
  })
  await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
}

interface PatchRequest {
  readonly items: readonly { readonly uid: string; readonly object: { readonly kind: string } }[]
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
const region = [{ op: 'add', path: '/spec/template/spec/region', value: 'eu' }]

/** Returns a response of GeneratePatches whose patches add a region to every template. */
const addRegion = ({ request }: { request: object }): ScriptedResponse => {
  const { items } = request as PatchRequest
  return proceedWith({ items: items.map(({ uid }) => ({ uid, patchType: 'JSONPatch', patch: base64(region) })) } as never)
}

/** Returns options of a ClusterClass with an external patch. `handlers` maps fields of the patch to handlers of the case's extension. */
const externalPatch = (twin: Twin, handlers: object) => ({
  spec: {
    patches: [
      {
        name: 'p',
        external: Object.fromEntries(
          Object.entries(handlers).map(([field, handler]) => [field, `${String(handler)}.${twin.namespace}`]),
        ),
      },
    ],
  },
})

const patches: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('GeneratePatches', addRegion)
  await createTopology(twin, externalPatch(twin, { generatePatchesExtension: 'generate-patches' }))
  twin.setResponse('GeneratePatches', () => proceedWith({ items: [] } as never))
  await twin.touch(Cluster, clusterName)
  await twin.settle('the extension returns no patches')
}

/** GeneratePatches or ValidateTopology fails for an existing Cluster. */
const topologyHookFails =
  (hook: 'GeneratePatches' | 'ValidateTopology', handlers: object): Case =>
  async (twin) => {
    await twin.registerExtension()
    await createTopology(twin, externalPatch(twin, handlers))
    twin.setResponse(hook, () => failed(hook))
    await twin.patch(Cluster, clusterName, topology({ controlPlane: { replicas: 3 } }))
    await twin.settle('the control plane is not scaled')
    twin.setResponse(hook, undefined)
    await twin.touch(Cluster, clusterName)
    await twin.settle('the control plane is scaled')
  }

const regionVariable = { name: 'region', required: false, schema: { openAPIV3Schema: { type: 'string', default: 'eu' } } }

const variables: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('DiscoverVariables', () => proceedWith({ variables: [regionVariable] } as never))
  await createTopology(
    twin,
    externalPatch(twin, { discoverVariablesExtension: 'discover-variables', generatePatchesExtension: 'generate-patches' }),
  )
  await twin.patch(Cluster, clusterName, topology({ variables: [{ name: 'region', value: 'us' }] }))
  await twin.settle('the variable region is set')
  await twin.patch(Cluster, clusterName, topology({ variables: [{ name: 'region', value: 1 }] }))
  await twin.settle('an invalid value is rejected')
}

const variablesFail: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('DiscoverVariables', () => failed('DiscoverVariables'))
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass(externalPatch(twin, { discoverVariablesExtension: 'discover-variables' })))
  await twin.settle('the class has no variables')
}

/** A class names a handler that no extension has. */
const unknownHandler: Case = async (twin) => {
  await twin.registerExtension()
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass(externalPatch(twin, { generatePatchesExtension: 'nothing' })))
  await twin.settle('the class is reconciled')
  await twin.create(Cluster, aCluster())
  await twin.settle('no object of the topology is created')
}

const upgradePlan: Case = async (twin) => {
  const stepsAfter = (from: unknown) =>
    ['v1.35.0', 'v1.36.0'].filter((candidate) => candidate > String(from)).map((candidate) => ({ version: candidate }))
  await twin.registerExtension()
  twin.setResponse('GenerateUpgradePlan', ({ request }) => {
    const controlPlaneUpgrades = stepsAfter(request['fromControlPlaneKubernetesVersion'])
    const workersUpgrades = stepsAfter(request['fromWorkersKubernetesVersion'])
    return proceedWith({ controlPlaneUpgrades, workersUpgrades } as never)
  })
  await createTopology(twin, {
    spec: { upgrade: { external: { generateUpgradePlanExtension: `generate-upgrade-plan.${twin.namespace}` } } },
  })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.36.0' }))
  await twin.settle('the Cluster is upgraded', isUpgraded('v1.36.0'))
}

const upgradePlanFails: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin, {
    spec: { upgrade: { external: { generateUpgradePlanExtension: `generate-upgrade-plan.${twin.namespace}` } } },
  })
  twin.setResponse('GenerateUpgradePlan', () => failed('GenerateUpgradePlan'))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the upgrade does not begin')
}

/** The extension cannot make the changes of a rollout in place, so that Machines are replaced. */
const notInPlace: Case = async (twin) => {
  await twin.registerExtension()
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the rollout is complete')
}

const inPlaceFails: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('CanUpdateMachineSet', () => failed('CanUpdateMachineSet'))
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the rollout does not begin')
}

/** A control plane provider requests an in-place update of a Machine. UpdateMachine blocks, fails, and completes. */
const updateMachine: Case = async (twin) => {
  const annotated = (annotations: object) => ({ metadata: { annotations } })
  const inProgress = annotated({ [UpdateInProgressAnnotation]: '' })
  await twin.registerExtension()
  await createReadyMachine(twin)
  twin.setResponse('UpdateMachine', () => blocked('UpdateMachine'))
  // A control plane provider makes these writes in this order.
  await twin.patch(Machine, 'm', inProgress)
  await twin.patch(stub.machine, 'm', inProgress)
  await twin.patch(stub.config, 'm', inProgress)
  await twin.settle('the hook is not yet pending')
  await twin.patch(Machine, 'm', { ...annotated({ [PendingHooksAnnotation]: 'UpdateMachine' }), spec: { version: 'v1.35.1' } })
  await twin.settle('the update is in progress')
  twin.setResponse('UpdateMachine', () => failed('UpdateMachine'))
  await twin.settle('the update fails')
  twin.setResponse('UpdateMachine', undefined)
  await twin.settle('the Machine is updated')
}

const upgradeHooks = {
  'before-cluster-upgrade': 'BeforeClusterUpgrade',
  'before-control-plane-upgrade': 'BeforeControlPlaneUpgrade',
  'after-control-plane-upgrade': 'AfterControlPlaneUpgrade',
  'before-workers-upgrade': 'BeforeWorkersUpgrade',
  'after-workers-upgrade': 'AfterWorkersUpgrade',
  'after-cluster-upgrade': 'AfterClusterUpgrade',
}

const upgradeCases: { [name: string]: Case } = {}
for (const [name, hook] of Object.entries(upgradeHooks)) {
  upgradeCases[`hooks-${name}-blocks`] = upgrade(hook, blocked)
  upgradeCases[`hooks-${name}-fails`] = upgrade(hook, failed)
}

/** A patch of the class has only a handler for ValidateTopology. */
const onlyValidates: Case = async (twin) => {
  await twin.registerExtension()
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass(externalPatch(twin, { validateTopologyExtension: 'validate-topology' })))
  await twin.settle('the class is reconciled')
  await twin.create(Cluster, aCluster())
  await twin.settle('no object of the topology is created')
}

/** An external patch has `enabledIf: 'false'`. */
const externalDisabled: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('GeneratePatches', addRegion)
  const { spec } = externalPatch(twin, {
    generatePatchesExtension: 'generate-patches',
    validateTopologyExtension: 'validate-topology',
  })
  await createTopology(twin, {
    spec: { patches: spec.patches.map((patch) => ({ ...patch, enabledIf: 'false' })) },
  })
  twin.setResponse('ValidateTopology', () => failed('ValidateTopology'))
  await twin.patch(Cluster, clusterName, topology({ controlPlane: { replicas: 3 } }))
  await twin.settle('the validation fails')
}

const mergePatch = ({ request }: { request: object }): ScriptedResponse => {
  const { items } = request as PatchRequest
  const patch = base64({
    metadata: { labels: { merged: 'yes' } },
    spec: { template: { spec: { region: 'eu', made: null } } },
    status: { x: 1 },
  })
  return proceedWith({ items: items.map(({ uid }) => ({ uid, patchType: 'JSONMergePatch', patch })) } as never)
}

const mergePatches: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('GeneratePatches', mergePatch)
  await createTopology(twin, externalPatch(twin, { generatePatchesExtension: 'generate-patches' }))
}

/** A Cluster is deleted while its creation is blocked. */
const creationCancelled: Case = async (twin) => {
  await twin.registerExtension()
  twin.setResponse('BeforeClusterCreate', () => blocked('BeforeClusterCreate'))
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass())
  await twin.settle('the class is reconciled')
  await twin.create(Cluster, aCluster())
  await twin.settle('no object of the topology is created')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted', isGone('Cluster'))
}

/** Starts an upgrade that a hook blocks. */
async function blockUpgrade(twin: Twin, hook = 'AfterControlPlaneUpgrade'): Promise<void> {
  await twin.registerExtension()
  await createTopology(twin)
  twin.setResponse(hook, () => blocked(hook))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the upgrade does not continue')
}

/** Makes a change while a hook blocks an upgrade. */
const whileBlocked =
  (hook: string, change: (twin: Twin) => Promise<unknown>): Case =>
  async (twin) => {
    await blockUpgrade(twin, hook)
    await change(twin)
    await twin.settle('the hook still blocks')
    twin.setResponse(hook, undefined)
    await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
  }

/** A user changes the pending hooks while a hook blocks. */
const pendingChanged =
  (pending: string | null): Case =>
  async (twin) => {
    await blockUpgrade(twin)
    await twin.patch(Cluster, clusterName, { metadata: { annotations: { [PendingHooksAnnotation]: pending } } })
    await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
  }

const deletedInUpgrade: Case = async (twin) => {
  await blockUpgrade(twin)
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted', isGone('Cluster'))
}

/** A user adds pending hooks to a Cluster that is not being upgraded. */
const pendingAdded =
  (pending: string): Case =>
  async (twin) => {
    await twin.registerExtension()
    await createTopology(twin)
    await twin.patch(Cluster, clusterName, { metadata: { annotations: { [PendingHooksAnnotation]: pending } } })
    await twin.settle('the pending hooks were called')
  }

/** Hooks block without a message. */
const withoutMessage: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin)
  twin.setResponse('BeforeClusterUpgrade', () => holdFor(1, ''))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the upgrade does not begin')
  twin.setResponse('BeforeClusterUpgrade', undefined)
  await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
  twin.setResponse('BeforeClusterDelete', () => holdFor(1, ''))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is not deleted')
}

/** The Cluster is paused while a hook blocks, and resumed when the hook no longer blocks. */
const pausedWhileBlocked: Case = async (twin) => {
  await blockUpgrade(twin)
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
  twin.setResponse('AfterControlPlaneUpgrade', undefined)
  await twin.patch(Cluster, clusterName, { spec: { paused: false } })
  await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
}

const configChanged = (change: object): Case =>
  whileBlocked('BeforeClusterUpgrade', (twin) => twin.patch(ExtensionConfig, twin.namespace, change))

const clusterChanged = (hook: string, change: object): Case =>
  whileBlocked(hook, (twin) => twin.patch(Cluster, clusterName, change))

const addedWorkers = workers(worker('a'), worker('b'))

/** A hook blocks the second step of an upgrade over two minor versions. */
const secondStep =
  (hook: string): Case =>
  async (twin) => {
    await twin.registerExtension()
    await createTopology(twin, { spec: { kubernetesVersions: ['v1.34.0', 'v1.35.0', 'v1.36.0'] } })
    twin.setResponse(hook, ({ request }) => {
      const fields = request as { readonly toKubernetesVersion?: string; readonly kubernetesVersion?: string }
      return (fields.toKubernetesVersion ?? fields.kubernetesVersion) === 'v1.36.0' ? blocked(hook) : proceedNow()
    })
    await twin.patch(Cluster, clusterName, topology({ version: 'v1.36.0' }))
    await twin.settle('the second step is blocked')
    twin.setResponse(hook, undefined)
    await twin.settle('the Cluster is upgraded', isUpgraded('v1.36.0'))
  }

const withoutWorkers: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin, {}, { workers: [] })
  twin.setResponse('AfterControlPlaneUpgrade', () => blocked('AfterControlPlaneUpgrade'))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the last step is blocked')
  twin.setResponse('AfterControlPlaneUpgrade', undefined)
  await twin.settle('the Cluster is upgraded')
}

/** A user allows the deletion that the hook blocks. */
const deletionAllowed: Case = async (twin) => {
  await twin.registerExtension()
  await createTopology(twin)
  twin.setResponse('BeforeClusterDelete', () => blocked('BeforeClusterDelete'))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is not deleted')
  await twin.patch(Cluster, clusterName, { metadata: { annotations: { [OkToDeleteAnnotation]: 'yes' } } })
  await twin.settle('the Cluster is deleted', isGone('Cluster'))
}

export const hookCases: Cases = {
  ...upgradeCases,
  'hooks-before-create-blocks': beforeCreate(blocked),
  'hooks-before-create-fails': beforeCreate(failed),
  'hooks-after-initialized-fails': afterInitialized(failed),
  'hooks-before-delete-blocks': beforeDelete(blocked),
  'hooks-before-delete-fails': beforeDelete(failed),
  'hooks-before-control-plane-upgrade-scales': workersWhileBlocked,
  'hooks-second-upgrade': secondUpgrade,
  'hooks-extension-removed': extensionRemoved,
  'hooks-patches': patches,
  'hooks-patches-fail': topologyHookFails('GeneratePatches', { generatePatchesExtension: 'generate-patches' }),
  'hooks-validation-fails': topologyHookFails('ValidateTopology', {
    generatePatchesExtension: 'generate-patches',
    validateTopologyExtension: 'validate-topology',
  }),
  'hooks-variables': variables,
  'hooks-variables-fail': variablesFail,
  'hooks-unknown-handler': unknownHandler,
  'hooks-upgrade-plan': upgradePlan,
  'hooks-upgrade-plan-fails': upgradePlanFails,
  'hooks-not-in-place': notInPlace,
  'hooks-in-place-fails': inPlaceFails,
  'hooks-update-machine': updateMachine,
  'hooks-only-validation': onlyValidates,
  'hooks-patches-disabled': externalDisabled,
  'hooks-merge-patches': mergePatches,
  'hooks-before-create-blocks-deleted': creationCancelled,
  'hooks-upgrade-blocks-deleted': deletedInUpgrade,
  'hooks-pending-removed': pendingChanged(null),
  'hooks-pending-replaced': pendingChanged('Other,,AfterClusterUpgrade'),
  'hooks-pending-initialized-added': pendingAdded('AfterControlPlaneInitialized'),
  'hooks-pending-upgrade-added': pendingAdded('AfterClusterUpgrade,AfterControlPlaneUpgrade,BeforeWorkersUpgrade'),
  'hooks-no-message': withoutMessage,
  'hooks-upgrade-blocks-paused': pausedWhileBlocked,
  'hooks-extension-paused': configChanged({ metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }),
  'hooks-extension-settings': configChanged({ spec: { settings: { a: 'b' } } }),
  'hooks-after-control-plane-upgrade-adds-workers': clusterChanged('AfterControlPlaneUpgrade', addedWorkers),
  'hooks-after-workers-upgrade-adds-workers': clusterChanged('AfterWorkersUpgrade', addedWorkers),
  'hooks-after-cluster-upgrade-adds-workers': clusterChanged('AfterClusterUpgrade', addedWorkers),
  'hooks-before-workers-upgrade-removes-workers': clusterChanged('BeforeWorkersUpgrade', workers()),
  'hooks-after-control-plane-upgrade-scales': clusterChanged(
    'AfterControlPlaneUpgrade',
    topology({ controlPlane: { replicas: 3 } }),
  ),
  'hooks-second-step-before-control-plane': secondStep('BeforeControlPlaneUpgrade'),
  'hooks-second-step-after-control-plane': secondStep('AfterControlPlaneUpgrade'),
  'hooks-second-step-before-workers': secondStep('BeforeWorkersUpgrade'),
  'hooks-upgrade-no-workers': withoutWorkers,
  'hooks-deletion-allowed': deletionAllowed,
}
