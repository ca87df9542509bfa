/**
 * Additional permissions for writing parts of a ResourceClaim's status. Changes of allocation and reservation require permission for the
 * subresource `binding`, changes of a device's status for the subresource `driver`; neither subresource has an endpoint. Upstream:
 * pkg/registry/resource/utils.go, v1.36.
 */
import { type FieldError, forbidden, subdomainProblems } from '@capstan/kube'
import { denialOf, type ResourceAttributes, type User, type WriteContext } from '@capstan/apiserver/kinds'
import { same, sameKey } from '../same.ts'
import type { AllocationResult, ResourceClaimStatus, ResourceV1ResourceClaim as ResourceClaim } from '../schemas/types.ts'

/** Returns an error for each change of the status for which the caller lacks permission. */
export function statusPermissionErrors(
  { metadata, status }: ResourceClaim,
  { status: old }: ResourceClaim,
  { server: { authorizer }, caller, verb }: WriteContext,
): FieldError[] {
  const claimAttributes = { kind: 'resource', user: caller, group: 'resource.k8s.io', resource: 'resourceclaims' } as const
  /** Returns the error text for the first permission, if none of the permissions is granted. */
  const denial = (permissions: readonly ResourceAttributes[]): string | undefined => {
    const decisions = permissions.map((permission) => ({ permission, ...authorizer.decide(permission) }))
    const [first] = decisions
    return first && !decisions.some(({ allowed }) => allowed) ? denialOf(first.permission, first.reason).message : undefined
  }
  const errors: FieldError[] = []

  if (!same(status.allocation, old.allocation) || !same(status.reservedFor, old.reservedFor)) {
    const problem = denial([{ ...claimAttributes, verb, subresource: 'binding' }])
    const needed = `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${verb}" permission`
    if (problem !== undefined) errors.push(forbidden('status.allocation', `${needed}: ${problem}`))
  }

  // Without an allocation, the device status is not checked: a write that removes the allocation also drops the status of its devices.
  if (!status.allocation) return errors
  const isOnNode = runsOn(caller, nodeOf(status.allocation))
  const verbs = [...(isOnNode ? [`associated-node:${verb}`] : []), `arbitrary-node:${verb}`]
  for (const driver of changedDrivers(status, old)) {
    const driverAttributes = { ...claimAttributes, subresource: 'driver', namespace: metadata.namespace, name: driver }
    const problem = denial(verbs.map((driverVerb) => ({ ...driverAttributes, verb: driverVerb })))
    const needed = `changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission`
    if (problem !== undefined) errors.push(forbidden('status.devices', `${needed}: ${problem}`))
  }
  return errors
}

/** Returns the names of the drivers whose device status changes, sorted. */
function changedDrivers({ devices: now = [] }: ResourceClaimStatus, { devices: before = [] }: ResourceClaimStatus): string[] {
  const notIn = (otherDevices: typeof now) => {
    const otherKeys = new Set(otherDevices.map(sameKey))
    return (device: (typeof now)[number]) => !otherKeys.has(sameKey(device))
  }
  return [...new Set([...now.filter(notIn(before)), ...before.filter(notIn(now))].map(({ driver }) => driver))].sort()
}

/** Returns the node of an allocation, if its selector names exactly one. */
function nodeOf({ nodeSelector }: AllocationResult): string | undefined {
  const [term, ...others] = nodeSelector?.nodeSelectorTerms ?? []
  if (!term || others.length > 0 || term.matchExpressions?.length || term.matchFields?.length !== 1) return undefined
  const { key, operator, values = [] } = term.matchFields[0]!
  return key === 'metadata.name' && operator === 'In' && values.length === 1 ? values[0] : undefined
}

/** Reports whether the user is a service account whose Pod runs on the node. */
function runsOn({ name, extra = {} }: User, node: string | undefined): boolean {
  const nodes = extra['authentication.kubernetes.io/node-name'] ?? []
  const isServiceAccount = /^system:serviceaccount:[^:]+:[^:]+$/.test(name)
  return isServiceAccount && node !== undefined && nodes.length === 1 && nodes[0] === node && subdomainProblems(node).length === 0
}
