import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

const reference = () => ({
  apiVersion: s.string().optional(),
  kind: s.string().optional(),
  namespace: s.string().optional(),
  name: s.string().optional(),
  uid: s.string().optional(),
  resourceVersion: s.string().optional(),
  fieldPath: s.string().optional(),
})

export const Event = defineKind({
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  scope: 'Namespaced',
  doc: 'Report of an occurrence that concerns an object.',
  fields: {
    involvedObject: s.object(reference()).doc('The object that the event concerns.'),
    reason: s.string().optional().doc('Reason for the event, one CamelCase word.'),
    message: s.string().optional(),
    type: s.string().optional().doc('Normal or Warning.'),
    count: s.int32().optional().doc('Number of occurrences.'),
    firstTimestamp: s.timestamp().nullable().optional(),
    lastTimestamp: s.timestamp().nullable().optional(),
    eventTime: s.timestamp().nullable().optional(),
    source: s.object({ component: s.string().optional(), host: s.string().optional() }).optional(),
    series: s.object({ count: s.int32().optional(), lastObservedTime: s.timestamp().nullable().optional() }).optional(),
    action: s.string().optional(),
    related: s.object(reference()).optional(),
    reportingComponent: s.string().optional().doc('Name of the controller that created the event.'),
    reportingInstance: s.string().optional(),
  },
  // Upstream's encoder always writes these fields.
  default(event) {
    event.source ??= {}
    event.firstTimestamp ??= null
    event.lastTimestamp ??= null
    event.eventTime ??= null
    event.reportingComponent ??= ''
    event.reportingInstance ??= ''
  },
})
export type Event = ObjectOf<typeof Event>
