import { expect, test } from 'vitest'
import { StatusError } from './errors.ts'

const fromStatus = (fields: { message: string; reason: string; code?: number }) =>
  StatusError.from({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...fields })

test.each(['constructor', 'toString'])(
  'the error from a Status with the unknown reason %s has the code and message of the Status and an empty reason',
  (reason) => {
    const error = fromStatus({ message: 'no', reason, code: 409 })
    expect(error).toMatchObject({ reason: '', code: 409, message: 'no' })
  },
)

test('the error from a Status with the reason StorageReadError has the reason, code and message of the Status', () => {
  // Upstream: metav1.StatusReasonStoreReadError.
  const status = { reason: 'StorageReadError', code: 500, message: 'cannot be decoded' }
  expect(fromStatus(status)).toMatchObject(status)
})

test('the error from a Status with an unknown reason and no code has the code 500', () => {
  expect(fromStatus({ message: 'no', reason: 'constructor' }).code).toBe(500)
})
