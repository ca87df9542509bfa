import { expect, test } from 'vitest'
import { StatusError } from './errors.ts'

test.each(['constructor', 'toString'])(
  'the error from a Status with the unknown reason %s has the code and message of the Status and an empty reason',
  (reason) => {
    const error = StatusError.from({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'no',
      reason,
      code: 409,
    })
    expect(error).toMatchObject({ reason: '', code: 409, message: 'no' })
  },
)

test('the error from a Status with the reason StorageReadError has the reason, code and message of the Status', () => {
  // Upstream: metav1.StatusReasonStoreReadError.
  const status = { reason: 'StorageReadError', code: 500, message: 'cannot be decoded' }
  const error = StatusError.from({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...status })
  expect(error).toMatchObject(status)
})

test('the error from a Status with an unknown reason and no code has the code 500', () => {
  const error = StatusError.from({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'no',
    reason: 'constructor',
  })
  expect(error.code).toBe(500)
})
