/** Converts Events between the core group, in which they are stored, and `events.k8s.io`. Upstream: pkg/apis/events/v1. */
import type { UnknownObject } from '@capstan/kube'

/** Fields whose names differ: the name in the core group and in `events.k8s.io`. */
const names = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
] as const

/** Converts an Event of `events.k8s.io` to the core group, in place. */
export function fromNewEvent(event: UnknownObject): void {
  for (const [coreName, newName] of names) rename(event, newName, coreName)
  // JSON of the core group always contains these two fields.
  event.reportingComponent ??= ''
  event.reportingInstance ??= ''
}

/** Converts an Event of the core group to `events.k8s.io`, in place. */
export function toNewEvent(event: UnknownObject): void {
  for (const [coreName, newName] of names) rename(event, coreName, newName)
  for (const field of ['reportingController', 'reportingInstance']) if (event[field] === '') delete event[field]
}

function rename(event: UnknownObject, from: string, to: string): void {
  if (event[from] === undefined) return
  event[to] = event[from]
  delete event[from]
}
