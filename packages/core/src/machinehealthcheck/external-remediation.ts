/**
 * External remediation: creates an object from a template. A provider's controller handles this object, the remediation request.
 * Upstream: machinehealthcheck_controller.go, v1.14.
 */
import { clonedKind, fromTemplate, Machine, MachineConditions, pluralOf, type TemplateReference } from '@capstan/api'
import {
  getCondition,
  isDeleting,
  isReason,
  type Kind,
  kindFinder,
  keyOf,
  keyText,
  legacyFalse,
  messageOf,
  type NewCondition,
  orAbsent,
  ownerReference,
  parseApiVersion,
  type UnknownObject,
  unknownKind,
} from '@capstan/kube'
import { SeeLogs } from '../see-logs.ts'
import type { MachineHealthCheckIO, MachineHealthCheckScope } from './scope.ts'

const { ExternallyRemediated } = MachineConditions

/** Error for a remediation request that could not be created, with the condition for the Machine. */
export class RemediationProblem extends Error {
  override readonly name = 'RemediationProblem'
  readonly condition: NewCondition

  constructor(message: string, condition: NewCondition, options?: ErrorOptions) {
    super(message, options)
    this.condition = condition
  }
}

const kindOf = ({ apiVersion, kind }: TemplateReference): Kind<UnknownObject> =>
  unknownKind({ apiVersion, kind, plural: pluralOf(kind) })

/** Result of `requestExternalRemediation`. */
export interface RemediationRequest {
  /** Conditions to write on the Machine. */
  readonly conditions: readonly NewCondition[]
  /** Whether the call created the request. False if it existed already. */
  readonly isCreated: boolean
}

/**
 * Creates the remediation request for the Machine unless it exists.
 * @throws RemediationProblem when the template cannot be read, or the request cannot be created
 */
export async function requestExternalRemediation(
  machine: Machine,
  ref: TemplateReference,
  { legacyProblems }: MachineHealthCheckScope,
  io: MachineHealthCheckIO,
): Promise<RemediationRequest> {
  const { client, log, signal } = io
  const templateKind = kindOf(ref)
  const kind = clonedKind(templateKind)
  // The request has the name of the Machine, so that a Machine has at most one request of a kind.
  const { name } = machine.metadata
  const namespace = machine.metadata.namespace!
  if (await orAbsent(client.get(kind, { namespace, name }, { signal }))) return existing(machine)

  const templateKey = { namespace, name: ref.name }
  let template: UnknownObject
  try {
    template = await client.get(templateKind, templateKey, { signal })
  } catch (err) {
    signal.throwIfAborted()
    const problem = `failed to retrieve ${ref.kind} ${keyText(templateKey)}: ${await templateErrorText(err, ref, io)}`
    legacyProblems.push(
      legacyFalse('ExternalRemediationTemplateAvailable', 'ExternalRemediationTemplateNotFound', 'Error', problem),
    )
    const message = `Error retrieving remediation template ${ref.kind} ${keyText(templateKey)}`
    const condition = ExternallyRemediated.false('RemediationTemplateNotFound', message)
    throw new RemediationProblem(problem, condition, { cause: err })
  }
  const owner = ownerReference(machine, Machine)
  const request = fromTemplate(template, { name, namespace, clusterName: machine.spec.clusterName, owner })
  log.info('Machine has failed health check, creating an external remediation request', { Machine: name, kind: kind.kind })
  try {
    await client.create(kind, request, { signal })
  } catch (err) {
    if (isReason(err, 'AlreadyExists')) return existing(machine)
    const text = messageOf(err)
    legacyProblems.push(
      legacyFalse('ExternalRemediationRequestAvailable', 'ExternalRemediationRequestCreationFailed', 'Error', text),
    )
    const problem = `error creating remediation request for Machine ${keyText({ namespace, name })}: ${text}`
    const condition = ExternallyRemediated.false('RemediationRequestCreationFailed', SeeLogs)
    throw new RemediationProblem(problem, condition, { cause: err })
  }
  return { conditions: [waiting], isCreated: true }
}

/** Returns the text with which upstream's client reports that a template could not be read. */
async function templateErrorText(
  err: unknown,
  { apiVersion, kind, name }: TemplateReference,
  { client, signal }: MachineHealthCheckIO,
): Promise<string> {
  if (!isReason(err, 'NotFound')) return messageOf(err)
  // The API server responds with NotFound to a request for an unknown kind, too.
  return kindFinder(client)({ apiVersion, kind }, signal).then(
    () => `${kind}.${parseApiVersion(apiVersion).group} ${JSON.stringify(name)} not found`,
    messageOf,
  )
}

const waiting = ExternallyRemediated.false('WaitingForRemediation')

/**
 * Returns the result for a request that exists already. The controller that handles the request updates the condition of the Machine, so
 * the condition is written only if it is absent, or was written before the request existed.
 */
function existing(machine: Machine): RemediationRequest {
  const reason = getCondition(machine, ExternallyRemediated.type)?.reason
  const isOutdated =
    reason === undefined || reason === 'RemediationTemplateNotFound' || reason === 'RemediationRequestCreationFailed'
  return { conditions: isOutdated ? [waiting] : [], isCreated: false }
}

/** Deletes the remediation request of a Machine that is healthy again. */
export async function endExternalRemediation(
  machine: Machine,
  ref: TemplateReference,
  { client, signal }: MachineHealthCheckIO,
): Promise<void> {
  const kind = clonedKind(kindOf(ref))
  const request = await orAbsent(client.get(kind, keyOf(machine), { signal }))
  if (!request || isDeleting(request)) return
  await orAbsent(client.delete(kind, keyOf(request), { preconditions: { uid: request.metadata.uid }, signal }))
}
