import { Event, pathSegmentProblems, type UnknownObject } from '@capstan/kube'
import { type BuiltinKind, declaredIn } from '../builtin-kind.ts'
import { at, column, field, nameColumn, number, text, wide } from '../columns.ts'

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

export const events: BuiltinKind<Event> = {
  ...declaredIn(Event),
  names: pathSegmentProblems,
  fields: {
    ...Object.fromEntries(involved.map((member) => [`involvedObject.${member}`, field('involvedObject', member)])),
    reason: field('reason'),
    reportingComponent: field('reportingComponent'),
    source: (event) => text(event, 'source', 'component') || text(event, 'reportingComponent'),
    type: field('type'),
  },
  columns: [
    column('Last Seen', (o) => lastSeen(o), { type: 'date' }),
    column('Type', (o) => text(o, 'type')),
    column('Reason', (o) => text(o, 'reason')),
    column('Object', (o) => `${text(o, 'involvedObject', 'kind').toLowerCase()}/${text(o, 'involvedObject', 'name')}`),
    wide('Subobject', (o) => text(o, 'involvedObject', 'fieldPath')),
    wide('Source', (o) =>
      [text(o, 'source', 'component') || text(o, 'reportingComponent'), text(o, 'source', 'host')].filter(Boolean).join(', '),
    ),
    column('Message', (o) => text(o, 'message').trim()),
    column('First Seen', (o) => firstSeen(o), { type: 'date', priority: 1 }),
    wide('Count', (o) => number(o, 'series', 'count') || number(o, 'count') || 1),
    { ...nameColumn, priority: 1 },
  ],
}

const lastSeen = (event: UnknownObject): string | null =>
  (at(event, 'series', 'lastObservedTime') ?? at(event, 'lastTimestamp') ?? firstSeen(event)) as string | null
const firstSeen = (event: UnknownObject): string | null =>
  (at(event, 'firstTimestamp') ?? at(event, 'eventTime') ?? null) as string | null
