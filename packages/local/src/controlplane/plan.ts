/**
 * Plans the next step of a control plane: each step creates, updates or deletes at most one Machine. Except for `resume`, such a
 * step waits for running in-place updates, and for the preconditions in `preflight`, for example that no Machine is being deleted. Pure: no
 * clock and no requests, so that tests can simulate whole rollouts.
 * Upstream: controlplane/kubeadm/reconcilers, v1.14.
 */
import { compareText } from '@capstan/kube'
import { keepsQuorum } from './remediation.ts'

/** A control plane Machine with the fields that planning needs. */
export interface PlannedMachine {
  readonly name: string
  /** Creation time, in RFC 3339. */
  readonly created: string
  readonly failureDomain?: string | undefined
  readonly deleting: boolean
  readonly hasNode: boolean
  /** Whether the Node of the Machine exists and is Ready. */
  readonly healthy: boolean
  /** Reasons why the Machine is not up to date; empty when it is. */
  readonly outdated: readonly string[]
  /** Whether a user has marked the Machine to be deleted first. */
  readonly deleteFirst: boolean
  /** Whether an extension may be able to update the Machine in place. */
  readonly updatable: boolean
  /**
   * State of an in-place update. `interrupted`: its start was not completed. `running`: the Machine controller calls the hook
   * UpdateMachine.
   */
  readonly update: 'none' | 'interrupted' | 'running'
}

/** State of a control plane from which `planStep` plans the next step. */
export interface ControlPlane {
  readonly replicas: number
  /** Maximum number of Machines above `replicas` during a rollout: 1 or 0. */
  readonly maxSurge: number
  readonly machines: readonly PlannedMachine[]
  /** Failure domains that are suitable for control plane machines. */
  readonly failureDomains: readonly string[]
  readonly certificatesAvailable: boolean
  /** Whether an unhealthy Machine was deleted and its replacement is not created yet. */
  readonly isRemediating?: boolean
  /** Version to which the topology of the Cluster upgrades the control plane next; `undefined` if no such upgrade is pending. */
  readonly pendingVersion?: string | undefined
}

export type Step =
  | { readonly kind: 'create'; readonly failureDomain: string | undefined; readonly reason: string }
  | { readonly kind: 'delete'; readonly machine: string; readonly reason: string }
  /** Updates the Machine in place if an extension can do so; otherwise deletes the Machine. */
  | { readonly kind: 'update'; readonly machine: string; readonly reason: string }
  /** Continues an in-place update whose start was interrupted. Planned before any other step. */
  | { readonly kind: 'resume'; readonly machine: string }
  /** The next step must wait, for the reasons in `messages`. */
  | { readonly kind: 'wait'; readonly messages: readonly string[] }
  /** No step is necessary: the number of Machines is as desired, and none needs a rollout. */
  | { readonly kind: 'none' }

/** Returns the next step of a control plane that is not being deleted. */
export function planStep(controlPlane: ControlPlane): Step {
  const { machines, replicas, maxSurge } = controlPlane
  const interrupted = machines.find(({ update, deleting }) => update === 'interrupted' && !deleting)
  if (interrupted) return { kind: 'resume', machine: interrupted.name }
  const updating = machines.filter(({ update }) => update !== 'none')
  if (updating.length > 0) {
    return { kind: 'wait', messages: updating.map(({ name }) => `* waiting for in-place update of Machine ${name} to complete`) }
  }
  const current = machines.length
  if (current === 0) return scaleUp(controlPlane, 'first control plane machine')
  const outdated = machines.filter(needsRollout)
  if (outdated.length > 0) {
    const reason = `${names(outdated)} not up-to-date`
    return current < replicas + maxSurge ? scaleUp(controlPlane, reason) : updateOrDelete(controlPlane, reason)
  }
  if (current < replicas) return scaleUp(controlPlane, `${current} Machines < ${replicas} replicas`)
  if (current > replicas) return scaleDown(controlPlane, `${current} Machines > ${replicas} replicas`)
  return { kind: 'none' }
}

/** Whether a rollout must replace the Machine or update it in place. */
const needsRollout = ({ outdated, deleting }: PlannedMachine): boolean => outdated.length > 0 && !deleting

/**
 * Returns the step that updates one Machine in place, deletes it, or waits. As upstream, an update is tried only when the rollout would
 * otherwise delete a Machine, so that a failed update costs no more than a deletion. An update is planned only if the Machine is updatable,
 * `preflight` returns no messages, and fewer than `replicas` Machines are up to date.
 */
function updateOrDelete(controlPlane: ControlPlane, reason: string): Step {
  const machine = nextToReplace(controlPlane)
  const upToDate = controlPlane.machines.filter(({ outdated }) => outdated.length === 0).length
  const isStable = preflight(controlPlane, { leaving: undefined }).length === 0
  if (machine.updatable && upToDate < controlPlane.replicas && isStable) return { kind: 'update', machine: machine.name, reason }
  return scaleDown(controlPlane, reason)
}

function scaleUp(controlPlane: ControlPlane, reason: string): Step {
  const messages = preflight(controlPlane, 'joining')
  if (messages.length > 0) return { kind: 'wait', messages }
  return { kind: 'create', failureDomain: domainForNext(controlPlane), reason }
}

function scaleDown(controlPlane: ControlPlane, reason: string): Step {
  const machine = nextToReplace(controlPlane)
  const messages = preflight(controlPlane, { leaving: machine })
  if (messages.length > 0) return { kind: 'wait', messages }
  return { kind: 'delete', machine: machine.name, reason }
}

/**
 * Returns upstream's messages for the unmet preconditions of a change: a Machine joins, leaves, or is updated in place
 * (`leaving: undefined`). While a version upgrade is pending or a Machine is being deleted, does not check whether Machines are healthy.
 */
function preflight(controlPlane: ControlPlane, change: 'joining' | { readonly leaving: PlannedMachine | undefined }): string[] {
  const { machines, pendingVersion, certificatesAvailable } = controlPlane
  if (machines.length === 0) return []
  if (pendingVersion !== undefined) return [`* waiting for a version upgrade to ${pendingVersion} to be propagated`]
  const messages: string[] = []
  if (change === 'joining' && !certificatesAvailable) messages.push('* cluster certificates are missing or unknown')
  if (machines.some((machine) => machine.deleting)) {
    return [...messages, '* waiting for a control plane Machine to complete deletion']
  }
  const leaving = change === 'joining' ? undefined : change.leaving
  // During a remediation, several Machines may be unhealthy. The replacement is created if at least one Machine is healthy and etcd keeps
  // its quorum.
  if (controlPlane.isRemediating && change === 'joining') {
    if (!machines.some(({ healthy }) => healthy)) messages.push('* waiting for control plane components to become healthy')
    if (!keepsQuorum(machines, true)) messages.push('* waiting for etcd cluster to become healthy')
  } else if (machines.some((machine) => machine !== leaving && !machine.healthy)) {
    messages.push('* waiting for control plane components to become healthy')
  }
  return messages
}

/**
 * Returns the failure domain for the next Machine: the domain with the fewest up-to-date Machines. Among several such domains, returns
 * the one with the fewest Machines. `undefined` if there are no failure domains.
 */
function domainForNext({ failureDomains, machines }: ControlPlane): string | undefined {
  const upToDate = machines.filter((machine) => machine.outdated.length === 0 && !machine.deleting)
  return [...failureDomains].sort(
    (a, b) =>
      inDomain(upToDate, a).length - inDomain(upToDate, b).length ||
      inDomain(machines, a).length - inDomain(machines, b).length ||
      compareText(a, b),
  )[0]
}

/**
 * Returns the next Machine to replace or delete, from the first non-empty set of candidates: the oldest Machine outside of all failure
 * domains or, without such a Machine, the oldest in the domain with the most candidates. If there are no failure domains, returns the oldest
 * candidate.
 */
function nextToReplace({ machines, failureDomains }: ControlPlane): PlannedMachine {
  const outdated = machines.filter(needsRollout)
  const candidates = [
    outdated.filter((machine) => machine.deleteFirst),
    machines.filter((machine) => machine.deleteFirst),
    outdated.filter((machine) => !machine.healthy),
    outdated,
    machines,
  ].find((set) => set.length > 0)!

  const outsideDomains = candidates.filter((machine) => !failureDomains.includes(machine.failureDomain ?? ''))
  if (outsideDomains.length > 0 && failureDomains.length > 0) return oldest(outsideDomains)
  const largestDomain = [...failureDomains].sort(
    (a, b) =>
      inDomain(candidates, b).length - inDomain(candidates, a).length ||
      inDomain(machines, b).length - inDomain(machines, a).length ||
      compareText(a, b),
  )[0]
  return oldest(largestDomain === undefined ? candidates : inDomain(candidates, largestDomain))
}

const inDomain = (machines: readonly PlannedMachine[], domain: string) =>
  machines.filter((machine) => machine.failureDomain === domain)

const oldest = (machines: readonly PlannedMachine[]): PlannedMachine =>
  [...machines].sort((a, b) => compareText(a.created, b.created) || compareText(a.name, b.name))[0]!

const names = (machines: readonly PlannedMachine[]) =>
  `${machines.length > 1 ? 'Machines' : 'Machine'} ${machines.map((machine) => machine.name).join(', ')}`
