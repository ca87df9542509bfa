/**
 * Cases in which Machines of a MachineDeployment become outdated, and an extension can update them in place. To be updated, a Machine first
 * moves to another MachineSet.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import {
  AcknowledgedMoveAnnotation,
  ExtensionConfig,
  Machine,
  MachineDeployment,
  MachineSet,
  MachineSetReceiveMachinesFromMachineSetsAnnotation,
  PendingAcknowledgeMoveAnnotation,
  PendingHooksAnnotation,
  UpdateInProgressAnnotation,
} from '@capstan/api'
import { fail, holdFor, proceedWith } from '@capstan/extension'
import { getCondition, isDeleting, isTrue, type KubeObject, Node, sleep, systemClock, timestamp } from '@capstan/kube'
import { clusterName, machineDeployment, named } from '../objects.ts'
import { noReport } from '../providers.ts'
import type { ScriptedResponse } from '../../runtime-extension/extension-host.ts'
import { oldStub, stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster } from './machine.ts'
import { isEvent, isRolledOut, ProvisioningLimit, strategy, version } from './machine-deployment.ts'
import { addCondition, byName, createWorkerTemplates, hasLabel, labels, machinesIn } from './machine-set.ts'
import { reportNodeStatus } from '../side.ts'

interface CanUpdateRequest {
  readonly desired: {
    readonly machineSet: { readonly spec: { readonly template: { readonly spec: object } } }
    readonly infrastructureMachineTemplate: { readonly spec: object }
    readonly bootstrapConfigTemplate: { readonly spec: object }
  }
}

const mergePatch = (value: object) => ({
  patchType: 'JSONMergePatch' as const,
  patch: Buffer.from(JSON.stringify(value)).toString('base64'),
})

/** Returns a response to CanUpdateMachineSet according to which every change can be made in place. */
const coverAll = ({ request }: { request: object }): ScriptedResponse => {
  const { machineSet, infrastructureMachineTemplate, bootstrapConfigTemplate } = (request as CanUpdateRequest).desired
  return proceedWith({
    machineSetPatch: mergePatch({ spec: { template: { spec: machineSet.spec.template.spec } } }),
    infrastructureMachineTemplatePatch: mergePatch({ spec: infrastructureMachineTemplate.spec }),
    bootstrapConfigTemplatePatch: mergePatch({ spec: bootstrapConfigTemplate.spec }),
  } as never)
}

interface Options {
  readonly replicas: number
  readonly rollingUpdate: object
}

const noSurge = { maxSurge: 0, maxUnavailable: 1 }

/**
 * Creates a MachineDeployment, whose Machines get the label `old`, and registers an extension that can make every change in place.
 * The hook UpdateMachine blocks.
 */
async function createUpdatable(twin: Twin, { replicas, rollingUpdate }: Options): Promise<void> {
  await twin.registerExtension()
  twin.setResponse('CanUpdateMachineSet', coverAll)
  twin.setResponse('UpdateMachine', () => holdFor(1, 'not yet'))
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(
    MachineDeployment,
    machineDeployment('md', { replicas, ...strategy('RollingUpdate', rollingUpdate) } as never),
  )
  await twin.settle('the MachineDeployment is created', isRolledOut(replicas))
  for (let index = 0; index < replicas; index++) await twin.patch(Machine, byName(index), labels('old'))
  await twin.settle('the Machines are labelled')
}

/** Writes the new version v1.35.1 to the status of every Node, as a kubelet does, and lets UpdateMachine complete. */
async function completeUpdates(twin: Twin): Promise<void> {
  await twin.inWorkload(clusterName, async (client) => {
    const { items } = await client.list(Node)
    for (const { metadata } of items) await reportNodeStatus(client, metadata.name, { nodeInfo: { kubeletVersion: 'v1.35.1' } })
  })
  twin.setResponse('UpdateMachine', undefined)
}

const hasFailed = (machine: Machine) => getCondition(machine, 'Updating')?.reason === 'InPlaceUpdateFailed'
const isUpdating = (machine: Machine) => getCondition(machine, 'Updating')?.message?.includes('not yet') ?? false
const updatesOf = (objects: readonly KubeObject[]) => machinesIn(objects).filter(isUpdating).length
const oldMachines = (objects: readonly KubeObject[]) => machinesIn(objects).filter(hasLabel('old')).length

/** Returns a predicate: whether the rollout to `replicas` Machines is complete, and `kept` of the old Machines still exist. */
const updated =
  (replicas: number, kept: number) =>
  (objects: readonly KubeObject[]): boolean =>
    isRolledOut(replicas)(objects) && oldMachines(objects) === kept

const moved: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  const template = { template: { spec: { made: 'from the template', size: 'large' } } }
  await twin.create(stub.machineTemplate, named('large', { spec: template }))
  await twin.create(stub.configTemplate, named('large', { spec: template }))
  const { bootstrap, infrastructureRef } = machineDeployment('md').spec.template.spec
  await twin.patch(MachineDeployment, 'md', {
    spec: {
      template: {
        spec: {
          version: 'v1.35.1',
          failureDomain: 'b',
          bootstrap: { configRef: { ...bootstrap.configRef!, name: 'large' } },
          infrastructureRef: { ...infrastructureRef, name: 'large' },
        },
      },
    },
  })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  twin.setResponse('UpdateMachine', () => fail('failed'))
  await twin.settle('the update fails', (objects) => machinesIn(objects).some(hasFailed))
  await completeUpdates(twin)
  await twin.settle('the Machine is updated', updated(1, 1))
}

const oneByOne: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 2, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the first Machine is being updated', (objects) => updatesOf(objects) === 1)
  await completeUpdates(twin)
  await twin.settle('both Machines are updated', updated(2, 2))
}

/** Core creates a surge Machine first, and updates old Machines when the surge Machine is available. */
const surge: Case = async (twin) => {
  const limit = new ProvisioningLimit()
  await limit.set(twin, 2)
  await createUpdatable(twin, { replicas: 2, rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('a third Machine is created', (objects) => machinesIn(objects).length === 3)
  await limit.set(twin, 3)
  await twin.settle('an old Machine is being updated', (objects) => updatesOf(objects) === 1)
  await completeUpdates(twin)
  await twin.settle('the rollout is complete', isRolledOut(2))
}

const pauseValue = (value: '' | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
const isPaused = ({ metadata }: KubeObject) => metadata.annotations?.['cluster.x-k8s.io/paused'] !== undefined
const isPending = ({ metadata }: Machine) => metadata.annotations?.[PendingAcknowledgeMoveAnnotation] !== undefined
const expectsMoves = (object: KubeObject) =>
  object.kind === MachineSet.kind &&
  (object.metadata.annotations?.[MachineSetReceiveMachinesFromMachineSetsAnnotation] ?? '') !== ''

/**
 * Changes the version, and pauses the MachineDeployment before `count` Machines move to the new MachineSet, so that the
 * MachineDeployment does not acknowledge these Machines. Then resumes the MachineDeployment.
 */
async function moveUnacknowledged(twin: Twin, count: number, beforeResume?: () => Promise<void>): Promise<void> {
  await twin.patch(MachineSet, byName(0), pauseValue(''))
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the new MachineSet waits for Machines of the paused one', (objects) => objects.some(expectsMoves))
  await twin.patch(MachineDeployment, 'md', pauseValue(''))
  await twin.settle('the MachineDeployment is paused')
  await twin.patch(MachineSet, (sets) => sets.find(isPaused), pauseValue(null))
  await twin.settle(
    'the moved Machines are not acknowledged',
    (objects) => machinesIn(objects).filter(isPending).length === count,
  )
  await beforeResume?.()
  await twin.patch(MachineDeployment, 'md', pauseValue(null))
}

const allAtOnce: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 2, rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } })
  await moveUnacknowledged(twin, 2)
  await twin.settle('both Machines are being updated', (objects) => updatesOf(objects) === 2)
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 1 } })
  await twin.settle('one of the updating Machines is deleted', (objects) => machinesIn(objects).length === 1)
  await completeUpdates(twin)
  await twin.settle('the Machine is updated', updated(1, 1))
}

/** The template changes back while a Machine is being updated. */
const reverted: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.0') })
  await twin.settle('the Machine is still being updated', (objects) => updatesOf(objects) === 1)
  twin.setResponse('UpdateMachine', undefined)
  await twin.settle('the Machine is updated back', updated(1, 1))
}

/** One of the Machines to update is unhealthy, and a health check has requested its remediation. */
const unhealthy: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 2, rollingUpdate: noSurge })
  await twin.patch(MachineSet, byName(0), pauseValue(''))
  await twin.patch(Machine, byName(1), labels('unhealthy'))
  for (const type of ['HealthCheckSucceeded', 'OwnerRemediated']) await addCondition(twin, byName(1), { type, status: 'False' })
  await twin.settle('a Machine is unhealthy')
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('no Machine moves from the paused MachineSet')
  await twin.patch(MachineSet, (sets) => sets.find(isPaused), pauseValue(null))
  await completeUpdates(twin)
  await twin.settle('the unhealthy Machine is replaced', updated(2, 1))
}

/** A Machine without a Node is not moved. */
const notProvisioned: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: { maxSurge: 0, maxUnavailable: 2 } })
  await twin.setReports({ machine: noReport })
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2 } })
  await twin.settle('the second Machine is not provisioned', (objects) => machinesIn(objects).length === 2)
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('only the first Machine moves', (objects) => updatesOf(objects) === 1)
}

/** A moved Machine waits until its MachineDeployment has acknowledged it. */
const acknowledged: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await moveUnacknowledged(twin, 1)
  await twin.settle('the moved Machine is being updated', (objects) => updatesOf(objects) === 1)
  await completeUpdates(twin)
  const isAcknowledged = (object: KubeObject) => object.metadata.annotations?.[AcknowledgedMoveAnnotation] !== undefined
  await twin.settle('the Machine is updated', (objects) => updated(1, 1)(objects) && !objects.some(isAcknowledged))
}

/** An updating Machine is deleted. */
const deletedMachine: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.delete(Machine, byName(0))
  await twin.settle(
    'a new Machine replaces the deleted one',
    (objects) => updated(1, 0)(objects) && !machinesIn(objects).some(isDeleting),
  )
}

/** A second ExtensionConfig registers the extension again, so that each hook has two handlers. */
const twoExtensions: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.registerExtensionAgain()
  await twin.settle('the update fails', (objects) => machinesIn(objects).some(hasFailed))
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.2') })
  await twin.settle('the next rollout does not begin')
}

/** A moved Machine is deleted before its MachineDeployment has acknowledged it. Its infrastructure blocks the deletion. */
const deletedBeforeUpdate: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await moveUnacknowledged(twin, 1, async () => {
    await twin.patch(stub.machine, byName(0), { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
    await twin.delete(Machine, byName(0))
    await twin.settle('the moved Machine is being deleted', (objects) => machinesIn(objects).some(isDeleting))
  })
  await twin.settle('the update of the deleted Machine starts', (objects) =>
    objects.some(isEvent('SuccessfulStartInPlaceUpdate')),
  )
  await twin.patch(stub.machine, (machines) => machines.find(isDeleting), { metadata: { finalizers: null } })
  await twin.settle(
    'a new Machine replaces the deleted one',
    (objects) => isRolledOut(1)(objects) && !machinesIn(objects).some(isDeleting),
  )
}

/** The infrastructure template of the old MachineSet is deleted before the MachineDeployment changes. */
const oldTemplateDeleted: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  const template = { template: { spec: { made: 'from the template', size: 'large' } } }
  await twin.create(stub.machineTemplate, named('large', { spec: template }))
  await twin.delete(stub.machineTemplate, 'worker')
  const { infrastructureRef } = machineDeployment('md').spec.template.spec
  const large = { template: { spec: { infrastructureRef: { ...infrastructureRef, name: 'large' } } } }
  await twin.patch(MachineDeployment, 'md', { spec: large })
  await twin.settle('a rollout is necessary, but no Machine moves', isRollingOut)
  await twin.create(stub.machineTemplate, named('worker', { spec: template }))
  await twin.touch(MachineDeployment, 'md')
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
}

/** Returns whether the condition RollingOut is True, as it is once a Machine is outdated, even if no Machine moves or is replaced yet. */
const isRollingOut = (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === MachineDeployment.kind && isTrue(object as MachineDeployment, 'RollingOut'))

/** The extension is removed while a Machine is being updated. */
const noExtension: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.runOnBoth('delete the ExtensionConfig', async (client) => {
    await client.delete(ExtensionConfig, { name: twin.namespace })
  })
  await twin.settle('the update fails', (objects) => machinesIn(objects).some(hasFailed))
}

/** The infrastructure of an updating Machine is deleted by another client. */
const noInfrastructure: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.delete(stub.machine, byName(0))
  await twin.settle('the update fails', (objects) => machinesIn(objects).some(hasFailed))
}

const withoutMark = { metadata: { annotations: { [UpdateInProgressAnnotation]: null } } }
const isHookPending = ({ metadata }: Machine) => metadata.annotations?.[PendingHooksAnnotation] !== undefined

/** A user removes the annotation that marks a Machine as being updated. */
const markRemoved: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.patch(Machine, byName(0), withoutMark)
  await twin.settle('the hook is not pending', (objects) => !machinesIn(objects).some(isHookPending))
}

/** A user removes the annotation that marks the infrastructure of a Machine as being updated. */
const infrastructureUnmarked: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.patch(stub.machine, byName(0), withoutMark)
  await twin.settle('the update waits', (objects) => machinesIn(objects).some(isHookPending) && updatesOf(objects) === 0)
  await twin.patch(stub.machine, byName(0), { metadata: { annotations: { [UpdateInProgressAnnotation]: '' } } })
  await completeUpdates(twin)
  await twin.settle('the Machine is updated', updated(1, 1))
}

/** The MachineDeployment is scaled up during an update. */
const scaledUp: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 2, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the first Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 3 } })
  await twin.settle(
    'a Machine is created, and another is being updated',
    (objects) => machinesIn(objects).length === 3 && updatesOf(objects) === 1,
  )
}

/** The rollout is paused during an update. */
const rolloutPaused: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.patch(MachineDeployment, 'md', { spec: { paused: true } })
  await twin.settle('the rollout is paused')
  twin.setResponse('UpdateMachine', undefined)
  await twin.settle('the Machine is updated', (objects) => !machinesIn(objects).some(isHookPending))
}

/** The MachineDeployment is deleted during an update. */
const deploymentDeleted: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 2, rollingUpdate: noSurge })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the first Machine is being updated', (objects) => updatesOf(objects) === 1)
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('the MachineDeployment is deleted', (objects) => !objects.some(({ kind }) => kind === MachineDeployment.kind))
}

/**
 * The new infrastructure or bootstrap template has a kind of another API group, and the extension can make the change of its spec in
 * place. Upstream moves the Machine, and then cannot update it. Capstan replaces the Machine.
 */
const otherKind =
  (part: 'infrastructure' | 'bootstrap'): Case =>
  async (twin) => {
    await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
    const template = { template: { spec: { made: 'from the template of another kind' } } }
    const { bootstrap, infrastructureRef } = machineDeployment('md').spec.template.spec
    await twin.create(
      part === 'infrastructure' ? oldStub.machineTemplate : oldStub.configTemplate,
      named('worker', { spec: template }),
    )
    const references =
      part === 'infrastructure'
        ? { infrastructureRef: { ...infrastructureRef, apiGroup: oldStub.group } }
        : { bootstrap: { configRef: { ...bootstrap.configRef!, apiGroup: oldStub.group } } }
    await twin.patch(MachineDeployment, 'md', { spec: { template: { spec: references } } })
    const isOfOtherKind = ({ spec }: Machine) =>
      (part === 'infrastructure' ? spec.infrastructureRef : spec.bootstrap.configRef!).apiGroup === oldStub.group
    await twin.settle('Capstan replaces the Machine, upstream moves it', (objects, side) => {
      const [first, ...others] = machinesIn(objects)
      if (!first || others.length > 0) return false
      return side === 'theirs'
        ? hasLabel('old')(first) && isTrue(first, 'Updating')
        : isOfOtherKind(first) && !hasLabel('old')(first) && objects.some(isEvent('InPlaceUpdateNotPossible'))
    })
  }

/** `rollout.after` requires the replacement of all Machines, although the extension can make every change in place. */
const rolloutAfter: Case = async (twin) => {
  await createUpdatable(twin, { replicas: 1, rollingUpdate: noSurge })
  const after = timestamp(Date.now() + 2_000)
  await sleep(systemClock, 3_000)
  await twin.patch(MachineDeployment, 'md', { spec: { rollout: { after } } })
  await twin.settle('the Machine is replaced', updated(1, 0))
}

export const inPlaceCases: Cases = {
  'in-place-moved': moved,
  'in-place-one-by-one': oneByOne,
  'in-place-surge': surge,
  'in-place-all-at-once': allAtOnce,
  'in-place-reverted': reverted,
  'in-place-unhealthy': unhealthy,
  'in-place-not-provisioned': notProvisioned,
  'in-place-acknowledged': acknowledged,
  'in-place-deleted-machine': deletedMachine,
  'in-place-two-extensions': twoExtensions,
  'in-place-deleted-before-update': deletedBeforeUpdate,
  'in-place-old-template-deleted': oldTemplateDeleted,
  'in-place-mark-removed': markRemoved,
  'in-place-infrastructure-unmarked': infrastructureUnmarked,
  'in-place-scaled-up': scaledUp,
  'in-place-rollout-paused': rolloutPaused,
  'in-place-deployment-deleted': deploymentDeleted,
  'in-place-rollout-after': rolloutAfter,
  'in-place-other-infrastructure-kind': otherKind('infrastructure'),
  'in-place-other-bootstrap-kind': otherKind('bootstrap'),
  'in-place-no-extension': noExtension,
  'in-place-no-infrastructure': noInfrastructure,
}
