/** Formats one call of an extension as a readable line. Pure. */
import type { ObservedCall } from '@capstan/extension'
import { isRecord } from '@capstan/kube'

/** Formats a call, for example as `BeforeClusterUpgrade of gate, v1.34.0 to v1.36.0: wait 30 s (backing up)`. */
export function callText(call: ObservedCall): string {
  const { hook, handler, extensionConfig, outcome } = call
  const handlerText = handler === undefined ? '' : ` of ${handler.slice(0, -extensionConfig.length - 1)}`
  const about = aboutText(call.request as Fields)
  const result =
    outcome.kind === 'failed' ? `failed: ${outcome.message}` : responseText(hook.name, call.request, outcome.response)
  return `${hook.name}${handlerText}${about === '' ? '' : `, ${about}`}: ${result}`
}

type Fields = { readonly [field: string]: unknown }

/** Formats the part of a request that distinguishes calls of a hook: the versions, or a Machine or MachineSet. Empty for other requests. */
function aboutText(request: Fields): string {
  const { fromKubernetesVersion, toKubernetesVersion, kubernetesVersion, fromControlPlaneKubernetesVersion } = request
  const from = (fromKubernetesVersion ?? fromControlPlaneKubernetesVersion) as string | undefined
  if (from !== undefined) return `${from} to ${String(toKubernetesVersion)}`
  if (typeof kubernetesVersion === 'string') return kubernetesVersion
  const objects = isRecord(request.current) ? request.current : isRecord(request.desired) ? request.desired : {}
  const { machine, machineSet } = objects as { machine?: Named; machineSet?: Named }
  const object = machine ?? machineSet
  return object ? `${object.kind} ${object.metadata.name}` : ''
}

interface Named {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

function responseText(hook: string, request: object, response: Fields): string {
  const { status, message, retryAfterSeconds } = response as { status?: string; message?: string; retryAfterSeconds?: number }
  const because = message ? ` (${message})` : ''
  if (status !== 'Success') return `${status === 'Failure' ? 'failed' : `status ${JSON.stringify(status)}`}${because}`
  if (retryAfterSeconds) return `wait ${retryAfterSeconds} s${because}`
  return `${contentText(hook, request as Fields, response)}${because}`
}

function contentText(hook: string, request: Fields, response: Fields): string {
  switch (hook) {
    case 'Discovery':
      return `handlers ${namesOf(response.handlers)}`
    case 'DiscoverVariables':
      return `variables ${namesOf(response.variables)}`
    case 'GeneratePatches':
      return patchesText(listOf(request.items), listOf(response.items))
    case 'ValidateTopology':
      return 'accepted'
    case 'GenerateUpgradePlan':
      return `control plane ${versionsOf(response.controlPlaneUpgrades)}, workers ${versionsOf(response.workersUpgrades)}`
    case 'CanUpdateMachine':
    case 'CanUpdateMachineSet': {
      const patched = Object.keys(response).filter((name) => name.endsWith('Patch') && isRecord(response[name]))
      return patched.length === 0 ? 'changes nothing' : `changes ${patched.map((name) => name.slice(0, -5)).join(', ')}`
    }
    default:
      return 'proceed'
  }
}

/** Formats patches, for example as `patches 2 of 4 templates: LocalMachineTemplate of MachineDeployment demo-a, …`. */
function patchesText(items: readonly Fields[], responseItems: readonly Fields[]): string {
  if (responseItems.length === 0) return 'no patches'
  const patched = items.filter(({ uid }) => responseItems.some((item) => item.uid === uid))
  const names = patched.map(({ object, holderReference }) => {
    const { kind } = object as Named
    const holder = holderReference as { kind: string; name: string }
    return `${kind} of ${holder.kind} ${holder.name}`
  })
  return `patches ${patched.length} of ${items.length} templates: ${names.join(', ')}`
}

const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])
const namesOf = (value: unknown): string =>
  listOf(value)
    .map(({ name }) => String(name))
    .join(', ') || 'none'
const versionsOf = (value: unknown): string =>
  listOf(value)
    .map(({ version }) => String(version))
    .join(' then ') || 'none'
