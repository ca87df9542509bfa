/** The kinds of `events.k8s.io/v1`: the events of the core, in another form. Upstream: pkg/apis/events and pkg/registry/core/event, v1.36. */
import { draft, type Event, type UnknownObject } from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { field } from './columns.ts'
import { eventColumns } from './core/event.ts'
import { fromNewEvent, toNewEvent } from './events/forms.ts'
import { changedEventErrors, commonErrors, newEventErrors } from './events/rules.ts'

const regarding = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const events: BuiltinKind = {
  createsOnUpdate: true,
  storedAs: 'v1',
  from: { v1: toNewEvent },
  fields: {
    ...Object.fromEntries(regarding.map((member) => [`regarding.${member}`, field('regarding', member)])),
    reason: field('reason'),
    reportingController: field('reportingController'),
    type: field('type'),
  },
  unknownField: (name) => `field label not supported: ${name}`,
  columns: eventColumns.map((column) => ({ ...column, cell: (event, now) => column.cell(inCoreForm(event), now) })),
  validate(event, old) {
    const core = inCoreForm(event) as unknown as Event
    return [
      ...commonErrors(core, 'reportingController'),
      ...(old ? changedEventErrors(core, inCoreForm(old) as unknown as Event) : newEventErrors(core)),
    ]
  },
}

function inCoreForm(event: UnknownObject): UnknownObject {
  const core = draft(event)
  fromNewEvent(core)
  return core
}

export const eventsGroup: KindTable = { events }
