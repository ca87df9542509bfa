import { expect, test } from 'vitest'
import { StatusError } from './errors.ts'

test.each(['constructor', 'toString'])('a Status with the unknown reason %s keeps its code and has no reason', (reason) => {
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
})

test('a Status of a server that cannot read its storage keeps its reason', () => {
  // Upstream: metav1.StatusReasonStoreReadError.
  const status = { reason: 'StorageReadError', code: 500, message: 'cannot be decoded' }
  const error = StatusError.from({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...status })
  expect(error).toMatchObject(status)
})

test('a Status with an unknown reason and no code gets the code 500', () => {
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
