/**
 * Validates Events. As upstream, many errors contain the empty string instead of the invalid value. Upstream:
 * pkg/apis/core/validation/events.go, v1.36.
 */
import { type Event, type FieldError, invalid, qualifiedNameProblems, required } from '@capstan/kube'
import { problems } from '../checks.ts'
import { immutable } from '../same.ts'

/**
 * Validates an Event of the core group, or an Event of `events.k8s.io` that has been converted to it. `reporter` is the name that errors use
 * for the field with the reporting controller: `reportingComponent` for the core group, `reportingController` for `events.k8s.io`.
 */
export function commonErrors(event: Event, reporter: string): FieldError[] {
  const { namespace: involvedNamespace = '' } = event.involvedObject
  const { namespace = '' } = event.metadata
  const mismatch = invalid('involvedObject.namespace', involvedNamespace, 'does not match event.namespace')
  if (!event.eventTime) {
    // Without an eventTime, an Event about a cluster-scoped object must be in the namespace `default`.
    return (involvedNamespace === '' ? namespace === 'default' : involvedNamespace === namespace) ? [] : [mismatch]
  }
  const { reportingComponent = '', reportingInstance = '', action = '', reason = '', message = '' } = event
  return [
    ...(involvedNamespace === '' && namespace !== 'default' && namespace !== 'kube-system' ? [mismatch] : []),
    ...(reportingComponent === '' ? [required(reporter)] : []),
    ...problems(reporter, reportingComponent, qualifiedNameProblems(reportingComponent)),
    ...shortTextErrors('reportingInstance', reportingInstance),
    ...shortTextErrors('action', action),
    ...shortTextErrors('reason', reason),
    ...(Buffer.byteLength(message) > 1024 ? [invalid('message', '', 'can have at most 1024 characters')] : []),
  ]
}

function shortTextErrors(field: string, text: string): FieldError[] {
  if (text === '') return [required(field)]
  return Buffer.byteLength(text) > 128 ? [invalid(field, '', 'can have at most 128 characters')] : []
}

/** Returns the errors, besides those of `commonErrors`, for a new Event of `events.k8s.io` that has been converted to the core group. */
export function newEventErrors(event: Event): FieldError[] {
  const { type = '', eventTime, firstTimestamp, lastTimestamp, count, source } = event
  const unset = (field: string, value: unknown): FieldError[] => (value ? [invalid(field, '', 'needs to be unset')] : [])
  return [
    ...seriesErrors(event),
    ...(eventTime ? [] : [required('eventTime')]),
    ...(type === 'Normal' || type === 'Warning' ? [] : [invalid('type', '', `has invalid value: ${type}`)]),
    ...unset('firstTimestamp', firstTimestamp),
    ...unset('lastTimestamp', lastTimestamp),
    ...unset('count', count),
    ...unset('source', source?.component || source?.host),
  ]
}

function seriesErrors({ series }: Event): FieldError[] {
  if (!series) return []
  return [
    ...((series.count ?? 0) < 2 ? [invalid('series.count', '', 'should be at least 2')] : []),
    ...(series.lastObservedTime ? [] : [required('series.lastObservedTime')]),
  ]
}

const immutableFields = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const

/**
 * Returns the errors, besides those of `commonErrors`, for an update of an Event of `events.k8s.io`. Apart from metadata, the update may
 * change only the series.
 */
export function changedEventErrors(event: Event, old: Event): FieldError[] {
  const isSameSeries = immutable('series', event.series, old.series).length === 0
  return [
    ...(isSameSeries ? [] : seriesErrors(event)),
    ...immutableFields.flatMap((name) => {
      const field = name === 'reportingComponent' ? 'reportingController' : name
      const errors = immutable(field, event[name], old[name])
      // Upstream validates the reason twice.
      return name === 'reason' ? [...errors, ...errors] : errors
    }),
  ]
}
