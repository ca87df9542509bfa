import type { Status } from '@capstan/kube'
import { expect, test } from 'vitest'
import { encodeStatus } from './protobuf-status.ts'

test('a Status is encoded as Go encodes it', () => {
  const status: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'm',
    reason: 'NotAcceptable',
    details: { name: 'n', causes: [{ reason: 'r', field: 'f' }] },
    code: 406,
  }
  expect(encodeStatus(status).toString('latin1')).toBe(
    'k8s\0' +
      '\n\f\n\x02v1\x12\x06Status' +
      '\x12=\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a\x01m"\rNotAcceptable' +
      '*\x15\n\x01n\x12\0\x1a\0"\x08\n\x01r\x12\0\x1a\x01f(\0' +
      '2\x000\x96\x03' +
      '\x1a\0"\0',
  )
})
