/**
 * The kind Event of `events.k8s.io/v1`: an Event of the core group in another format. Upstream: pkg/apis/events and pkg/registry/core/event,
 * v1.36.
 */
import { draft, type Event, type UnknownObject } from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { field } from './columns.ts'
import { eventColumns } from './core/event.ts'
import { fromNewEvent, toNewEvent } from './events/conversion.ts'
import { changedEventErrors, commonErrors, newEventErrors } from './events/validation.ts'

const regardingFields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const events: BuiltinKind = {
  createsOnUpdate: true,
  storedAs: 'v1',
  convertFrom: { v1: toNewEvent },
  selectableFields: {
    ...Object.fromEntries(regardingFields.map((member) => [`regarding.${member}`, field('regarding', member)])),
    reason: field('reason'),
    reportingController: field('reportingController'),
    type: field('type'),
  },
  unknownFieldSelector: (name) => `field label not supported: ${name}`,
  columns: eventColumns.map((column) => ({ ...column, cell: (event, now) => column.cell(asCoreEvent(event), now) })),
  validate(event, old) {
    const core = asCoreEvent(event) as unknown as Event
    return [
      ...commonErrors(core, 'reportingController'),
      ...(old ? changedEventErrors(core, asCoreEvent(old) as unknown as Event) : newEventErrors(core)),
    ]
  },
}

function asCoreEvent(event: UnknownObject): UnknownObject {
  const core = draft(event)
  fromNewEvent(core)
  return core
}

export const eventsGroup: KindTable = { events }
