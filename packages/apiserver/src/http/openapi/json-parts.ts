/** Writes JSON objects member by member. */
import { writeJSON } from '@capstan/kube'

/** Encodes a member with its name. */
export const jsonMember = (name: string, value: unknown): Buffer => Buffer.from(`${JSON.stringify(name)}:${writeJSON(value)}`)

const comma = Buffer.from(',')

/** Yields the members with commas between them. */
export function* joinWithCommas(members: Iterable<Buffer>): Iterable<Buffer> {
  let isFirst = true
  for (const member of members) {
    if (!isFirst) yield comma
    isFirst = false
    yield member
  }
}
