/**
 * Updates control plane Machines in place if an extension can. If the patches of the extension's response cover all differences, this
 * provider writes the desired Machine, infrastructure and bootstrap config, with an annotation. The Machine controller of core then calls
 * the extension to perform the update.
 * Upstream: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/inplace*.go, v1.14.
 */
import {
  CanUpdateMachine,
  clonedKind,
  fromTemplate,
  isMarkedForUpdate,
  Machine,
  onlyHandler,
  PendingHooksAnnotation,
  pendingHooksText,
  type RequestOf,
  type ResponseOf,
  TemplateClonedFromGroupKindAnnotation,
  TemplateClonedFromNameAnnotation,
  uncoveredOfMachine,
  UpdateInProgressAnnotation,
  UpdateMachine,
  withoutState,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  diffMerge,
  draft,
  equal,
  type Input,
  isReason,
  type Kind,
  keyOf,
  keyText,
  type KubeObject,
  messageOf,
  type UnknownObject,
} from '@capstan/kube'
import { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'
import { InfrastructureManager, machineMetadata, readMachineParts, referencedKind } from './machines.ts'
import { machineTemplateOf } from '../kinds/local-control-plane.ts'
import type { ControlPlaneScope } from './scope.ts'

type UpdateRequest = Pick<RequestOf<typeof CanUpdateMachine>, 'current' | 'desired'>

/** The members of a runtime client that this provider needs; core's client has them. */
export interface InPlaceUpdates {
  /** False until the registered extensions are known. */
  readonly ready: boolean
  /** Returns the names of the hook's handlers that select the object. */
  handlersFor(hook: typeof CanUpdateMachine, forObject: KubeObject): Promise<readonly string[]>
  /** Calls `listener` when an extension is added, changed or removed. */
  onChanged?(listener: () => void): void
  /** @throws Error when the call fails and the failure policy of the handler does not ignore the failure */
  call(
    hook: typeof CanUpdateMachine,
    forObject: KubeObject,
    handler: string,
    request: UpdateRequest,
    options?: { readonly signal?: AbortSignal },
  ): Promise<ResponseOf<typeof CanUpdateMachine>>
}

/** A Machine, with the current and desired objects of its infrastructure and bootstrap config. */
interface Change {
  readonly machine: Machine
  readonly infrastructureKind: Kind<UnknownObject>
  readonly infrastructure: { readonly current: UnknownObject; readonly desired: Input<UnknownObject> }
  readonly bootstrap: { readonly current: LocalBootstrapConfig; readonly desired: LocalBootstrapConfig }
}

/** Whether the Machine can be updated in place. `reasons` are for users, and empty when no handler selects the Machine. */
type Decision = { readonly kind: 'can' } | { readonly kind: 'cannot'; readonly reasons: readonly string[] }

/**
 * Decides whether an extension can update the Machine in place.
 *
 * @throws Error when several handlers select the Machine, when `call` of `updates` fails, or when the API server fails
 */
export async function decideInPlaceUpdate(
  scope: ControlPlaneScope,
  machine: Machine,
  io: ReconcileContext,
  updates: InPlaceUpdates,
): Promise<Decision> {
  const handler = onlyHandler(CanUpdateMachine, await updates.handlersFor(CanUpdateMachine, machine))
  if (handler === undefined) return cannotUpdate()
  const change = await changeOf(scope, machine, io)
  if ('obstacle' in change) return cannotUpdate(change.obstacle)
  const request = await buildRequest(change, scope.controlPlane.spec.version, io)
  if ('rejected' in request) return cannotUpdate(request.rejected)
  const response = await io.withoutWorker(() => updates.call(CanUpdateMachine, machine, handler, request, { signal: io.signal }))
  const reasons = uncoveredOfMachine(request, response, handler)
  return reasons.length === 0 ? { kind: 'can' } : { kind: 'cannot', reasons }
}

const cannotUpdate = (...reasons: string[]): Decision => ({ kind: 'cannot', reasons })

/**
 * Returns the Machine's current objects and the objects that this control plane would create now, or the reason why the Machine cannot be
 * updated in place.
 */
async function changeOf(
  scope: ControlPlaneScope,
  machine: Machine,
  io: ReconcileContext,
): Promise<Change | { obstacle: string }> {
  const { controlPlane, cluster, template } = scope
  const { infrastructure, infrastructureKind, bootstrap } = await readMachineParts(machine, io)
  const { kind, name } = machine.spec.infrastructureRef
  if (!infrastructure || template.state !== 'found') return { obstacle: `could not compute desired ${kind}` }
  if (!bootstrap) return { obstacle: `could not compute desired ${LocalBootstrapConfig.kind}` }
  const { [TemplateClonedFromNameAnnotation]: from, [TemplateClonedFromGroupKindAnnotation]: groupKind } =
    infrastructure.metadata.annotations ?? {}
  if (from === undefined || groupKind === undefined) return { obstacle: `${kind} ${name} has no annotation with its template` }
  const isAppliedByThisManager = infrastructure.metadata.managedFields?.some(
    ({ manager, operation }) => manager === InfrastructureManager && operation === 'Apply',
  )
  // Fields that another manager applied would remain after their removal from the template, and be taken for desired fields.
  if (!isAppliedByThisManager) return { obstacle: `${kind} ${name} was not applied by this control plane` }
  const desiredKind = clonedKind(referencedKind(machineTemplateOf(controlPlane).spec.infrastructureRef, io))
  if (desiredKind.kind !== infrastructureKind.kind || desiredKind.group !== infrastructureKind.group) {
    return { obstacle: `${kind} cannot be updated in-place: ${desiredKind.kind}.${desiredKind.group} is required` }
  }
  const metadata = machineMetadata(scope)
  const clone = fromTemplate(template.object, {
    name: infrastructure.metadata.name,
    namespace: infrastructure.metadata.namespace!,
    clusterName: cluster.metadata.name,
    ...metadata,
  })
  const config = draft(bootstrap)
  config.spec = draft(controlPlane.spec.bootstrapConfigSpec ?? {})
  return {
    machine,
    infrastructureKind,
    // With the uid, the apply request does not create a deleted object again.
    infrastructure: {
      current: infrastructure,
      desired: { ...clone, metadata: { ...clone.metadata, uid: infrastructure.metadata.uid } },
    },
    bootstrap: { current: { ...bootstrap, spec: bootstrap.spec ?? {} }, desired: config },
  }
}

/**
 * Builds the request to the extension: current and desired objects that differ only in fields to update. Labels and annotations are equal
 * in both, because they change without an update. Both infrastructure machines are results of dry runs, so that server-side defaults and
 * fields of other writers are equal, too. Returns `rejected` when the API server rejects a dry run as invalid or forbidden.
 */
async function buildRequest(
  change: Change,
  version: string,
  io: ReconcileContext,
): Promise<UpdateRequest | { rejected: string }> {
  const { machine, infrastructure, bootstrap } = change
  const { labels, annotations, uid } = infrastructure.desired.metadata
  const { namespace, name } = infrastructure.current.metadata
  const current = {
    metadata: { name, namespace: namespace!, uid: uid!, labels: labels ?? {}, annotations: annotations ?? {} },
    spec: infrastructure.current['spec'] ?? {},
  } as unknown as Input<UnknownObject>
  const dryRunResults: UnknownObject[] = []
  for (const [role, object] of [
    ['current', current],
    ['desired', infrastructure.desired],
  ] as const) {
    try {
      dryRunResults.push(await apply(change, object, io, { dryRun: true }))
    } catch (err) {
      const failure = `server side apply dry-run for ${role} InfraMachine failed: ${messageOf(err)}`
      if (isReason(err, 'Invalid') || isReason(err, 'Forbidden')) return { rejected: failure }
      throw new Error(`failed to generate CanUpdateMachine request: ${failure}`, { cause: err })
    }
  }
  return {
    current: {
      machine: withoutState(machine),
      infrastructureMachine: withoutState(dryRunResults[0]!),
      bootstrapConfig: withoutState({ ...bootstrap.current, metadata: bootstrap.desired.metadata }) as unknown as UnknownObject,
    },
    desired: {
      machine: withoutState(desiredMachine(change, version)),
      infrastructureMachine: withoutState(dryRunResults[1]!),
      bootstrapConfig: withoutState(bootstrap.desired) as unknown as UnknownObject,
    },
  }
}

/** Returns the Machine with the new version. Other fields of the template propagate to existing Machines without an update. */
const desiredMachine = ({ machine }: Change, version: string): Machine => ({ ...machine, spec: { ...machine.spec, version } })

const apply = (
  { infrastructureKind }: Change,
  object: Input<UnknownObject>,
  { client, signal }: ReconcileContext,
  options: { readonly dryRun?: boolean } = {},
): Promise<UnknownObject> =>
  client.apply(infrastructureKind, object, { fieldManager: InfrastructureManager, force: true, ...options, signal })

/**
 * Starts an in-place update, or continues an interrupted one. Returns the updated Machine. Writes in this order:
 * 1. the annotation `update-in-progress` on the Machine, after which the update cannot be cancelled;
 * 2. the infrastructure, whose write is the most likely to be rejected;
 * 3. the bootstrap config;
 * 4. the version of the Machine and the pending hook, which the Machine controller then calls.
 */
export async function triggerInPlaceUpdate(scope: ControlPlaneScope, machine: Machine, io: ReconcileContext): Promise<Machine> {
  const { client, events, log, signal } = io
  const key = keyOf(machine)
  const updateInProgress = { [UpdateInProgressAnnotation]: '' }
  const triggerError = (detail: string, cause?: unknown) => {
    const text = `failed to complete triggering in-place update for Machine ${keyText(key)}${detail}`
    return new Error(text, cause === undefined ? {} : { cause })
  }
  log.info('Triggering in-place update', { Machine: machine.metadata.name })
  let latest = machine
  if (!isMarkedForUpdate(machine)) {
    latest = await client.patch(
      Machine,
      key,
      { type: 'merge', body: { metadata: { annotations: updateInProgress } } },
      { signal },
    )
  }
  const change = await changeOf(scope, latest, io)
  if ('obstacle' in change) throw triggerError(`, ${change.obstacle}`)
  const { infrastructure, bootstrap } = change
  try {
    const { metadata } = infrastructure.desired
    await apply(
      change,
      { ...infrastructure.desired, metadata: { ...metadata, annotations: { ...metadata.annotations, ...updateInProgress } } },
      io,
    )

    const config = {
      metadata: { uid: bootstrap.current.metadata.uid, annotations: updateInProgress },
      ...diffMerge({ spec: bootstrap.current.spec }, { spec: bootstrap.desired.spec }),
    }
    await client.patch(LocalBootstrapConfig, keyOf(bootstrap.current), { type: 'merge', body: config }, { signal })

    const pending = { [PendingHooksAnnotation]: pendingHooksText(latest, { add: [UpdateMachine.name] }) }
    const { version } = scope.controlPlane.spec
    latest = await client.patch(
      Machine,
      key,
      {
        type: 'merge',
        body: { metadata: { annotations: pending }, ...(equal(latest.spec.version, version) ? {} : { spec: { version } }) },
      },
      { signal },
    )
  } catch (err) {
    throw triggerError(`: ${messageOf(err)}`, err)
  }
  log.info('Completed triggering in-place update', { Machine: machine.metadata.name })
  events.event(machine, 'Normal', 'SuccessfulStartInPlaceUpdate', 'Machine starting in-place update')
  return latest
}
