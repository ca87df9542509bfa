/** The two forms of one event: that of the core, in which it is stored, and that of `events.k8s.io`. Upstream: pkg/apis/events/v1. */
import type { UnknownObject } from '@capstan/kube'

/** Fields by their names in the core, and in the other group. */
const names = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
] as const

/** Brings a draft into the form of the core. */
export function fromNewEvent(event: UnknownObject): void {
  for (const [ofCore, other] of names) rename(event, other, ofCore)
  // There, these two are always shown.
  event.reportingComponent ??= ''
  event.reportingInstance ??= ''
}

/** Brings a draft into the form of `events.k8s.io`. */
export function toNewEvent(event: UnknownObject): void {
  for (const [ofCore, other] of names) rename(event, ofCore, other)
  for (const field of ['reportingController', 'reportingInstance']) if (event[field] === '') delete event[field]
}

function rename(event: UnknownObject, from: string, to: string): void {
  if (event[from] === undefined) return
  event[to] = event[from]
  delete event[from]
}
