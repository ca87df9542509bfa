/**
 * Encodes a Status in protobuf, for error responses to clients that accept only protobuf. Like upstream, also encodes empty strings
 * and zeros. Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
 */
import type { Status } from '@capstan/kube'

export function encodeStatus({ status, message = '', reason = '', details, code = 0 }: Status): Buffer {
  // ListMeta: selfLink, resourceVersion and continue.
  const metadata = Buffer.concat([text(1, ''), text(2, ''), text(3, '')])
  const parts = [bytes(1, metadata), text(2, status), text(3, message), text(4, reason)]
  if (details && Object.keys(details).length > 0) {
    const { name = '', group = '', kind = '', causes = [], retryAfterSeconds = 0, uid = '' } = details
    const causeFields = causes.map((cause) =>
      bytes(4, Buffer.concat([text(1, cause.reason ?? ''), text(2, cause.message ?? ''), text(3, cause.field ?? '')])),
    )
    parts.push(
      bytes(
        5,
        Buffer.concat([text(1, name), text(2, group), text(3, kind), ...causeFields, number(5, retryAfterSeconds), text(6, uid)]),
      ),
    )
  }
  parts.push(number(6, code))
  const type = Buffer.concat([text(1, 'v1'), text(2, 'Status')])
  return Buffer.concat([Buffer.from('k8s\0'), bytes(1, type), bytes(2, Buffer.concat(parts)), text(3, ''), text(4, '')])
}

const text = (field: number, value: string): Buffer => bytes(field, Buffer.from(value, 'utf8'))
const bytes = (field: number, value: Buffer): Buffer => Buffer.concat([varint((field << 3) | 2), varint(value.length), value])
const number = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)])

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let remaining = value; ; remaining = Math.floor(remaining / 128)) {
    if (remaining < 128) return Buffer.from([...bytes, remaining])
    bytes.push((remaining % 128) | 128)
  }
}
