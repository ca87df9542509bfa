/** Scenarios of Events of `events.k8s.io/v1`, which are the same objects as Events of `v1`. */
import { columnsOf, get, mergePatch, post, remove, type Scenario, variants } from './step.ts'

const events = '/apis/events.k8s.io/v1/namespaces/default/events'
const core = '/api/v1/namespaces/default/events'
const regarding = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'x', uid: 'u', fieldPath: 'data.a' }
const event = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'min' },
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: 'example.com/c',
  reportingInstance: 'c-1',
  action: 'Acting',
  reason: 'Because',
  type: 'Normal',
  regarding,
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'events',
    steps: [
      post(events, event),
      post(events, {
        ...event,
        metadata: { name: 'max' },
        note: 'something\nhas happened',
        related: { kind: 'Secret', name: 'y' },
        series: { count: 3, lastObservedTime: '2026-01-01T00:00:01.000001Z' },
      }),
      post(core, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'core' },
        involvedObject: regarding,
        reason: 'Because',
        message: 'it was so',
        type: 'Warning',
        count: 4,
        firstTimestamp: '2025-01-01T00:00:00Z',
        lastTimestamp: '2025-01-01T00:01:00Z',
        source: { component: 'kubelet', host: 'n' },
      }),
      get(`${core}/max`),
      get(`${events}/core`),
      ...variants(events, event, [
        { eventTime: null },
        { reportingController: null },
        { reportingController: 'not valid!' },
        { reportingInstance: null },
        { reportingInstance: 'x'.repeat(129) },
        { action: null },
        { action: 'x'.repeat(129) },
        { reason: null },
        { reason: 'x'.repeat(129) },
        { type: null },
        { type: 'Sometimes' },
        { note: 'x'.repeat(1025) },
        { regarding: { namespace: 'other' } },
        {
          deprecatedCount: 1,
          deprecatedSource: { component: 'x' },
          deprecatedFirstTimestamp: '2026-01-01T00:00:00Z',
          deprecatedLastTimestamp: '2026-01-01T00:00:00Z',
        },
        { series: { count: 1, lastObservedTime: '2026-01-01T00:00:01.000001Z' } },
        { series: { count: 2 } },
      ]),
      ...variants(core, { apiVersion: 'v1', kind: 'Event', metadata: { name: 'min' }, involvedObject: regarding }, [
        { involvedObject: { namespace: 'other' } },
        { involvedObject: { namespace: null } },
        { eventTime: '2026-01-01T00:00:00.000000Z' },
      ]),
      mergePatch(`${events}/min`, { series: { count: 5, lastObservedTime: '2026-01-01T00:00:01.000001Z' } }),
      mergePatch(`${events}/min`, { note: 'another' }),
      mergePatch(`${events}/core`, { note: 'another' }),
      mergePatch(`${core}/core`, { count: 5, message: 'another' }),
      columnsOf(events),
      get(`${events}?fieldSelector=reason%3DNone`),
      get(`${events}?fieldSelector=reportingController%3DNone,regarding.kind%3DNone,type%3DNone`),
      get(`${events}?fieldSelector=involvedObject.kind%3DNone`),
      remove(`${events}/min`),
    ],
  },
]
