import { ageText, Event, pathSegmentProblems, type UnknownObject } from '@capstan/kube'
import type { PrinterColumn } from '@capstan/apiserver/kinds'
import { type BuiltinKind, declaredIn } from '../builtin-kind.ts'
import { at, column, field, nameColumn, number, text, wide } from '../columns.ts'
import { fromNewEvent } from '../events/conversion.ts'
import { commonErrors } from '../events/validation.ts'

const involvedFields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

export const eventColumns: readonly PrinterColumn[] = [
  column('Last Seen', (o, now) => ageOf(lastSeen(o), now)),
  column('Type', (o) => text(o, 'type')),
  column('Reason', (o) => text(o, 'reason')),
  column('Object', (o) => {
    const kind = text(o, 'involvedObject', 'kind').toLowerCase()
    const name = text(o, 'involvedObject', 'name')
    return name === '' ? kind : `${kind}/${name}`
  }),
  wide('Subobject', (o) => text(o, 'involvedObject', 'fieldPath')),
  wide('Source', (o) =>
    [text(o, 'source', 'component') || text(o, 'reportingComponent'), text(o, 'source', 'host') || text(o, 'reportingInstance')]
      .filter(Boolean)
      .join(', '),
  ),
  column('Message', (o) => text(o, 'message').trim()),
  wide('First Seen', (o, now) => ageOf(firstSeen(o), now)),
  wide('Count', (o) => number(o, 'series', 'count') || number(o, 'count') || 1),
  { ...nameColumn, priority: 1 },
]

export const events: BuiltinKind<Event> = {
  createsOnUpdate: true,
  default: declaredIn(Event).default!,
  names: pathSegmentProblems,
  convertFrom: { 'events.k8s.io/v1': fromNewEvent },
  selectableFields: {
    ...Object.fromEntries(involvedFields.map((member) => [`involvedObject.${member}`, field('involvedObject', member)])),
    reason: field('reason'),
    reportingComponent: field('reportingComponent'),
    source: (event) => text(event, 'source', 'component') || text(event, 'reportingComponent'),
    type: field('type'),
  },
  columns: eventColumns,
  validate: (event) => commonErrors(event, 'reportingComponent'),
}

const lastSeen = (event: UnknownObject): unknown =>
  at(event, 'series') ? at(event, 'series', 'lastObservedTime') : (at(event, 'lastTimestamp') ?? firstSeen(event))
const firstSeen = (event: UnknownObject): unknown => at(event, 'firstTimestamp') ?? at(event, 'eventTime')

const ageOf = (time: unknown, now: number): string => (time === undefined || time === null ? '<unknown>' : ageText(time, now))
