/** What JSON makes of the zeroes of Go types: read from the table of protobuf messages, which is made from the same types. */
import { messages } from '../protobuf-messages.ts'

/** `null`: JSON shows the zero value as null. */
export type Zero = 'shown' | 'left out' | 'null'

/** The fields of the Go type of a schema, those of embedded types included; none where the type is not known. */
export const goFields = (component: string): ReadonlyMap<string, Zero> => fieldsOf(messageName(component))

/** `core/v1.Pod` for `io.k8s.api.core.v1.Pod`. */
function messageName(component: string): string {
  const parts = component.split('.')
  const [version, kind] = parts.slice(-2)
  return `${parts[2] === 'api' ? parts[3]! : 'meta'}/${version!}.${kind!}`
}

function fieldsOf(message: string): Map<string, Zero> {
  const fields = new Map<string, Zero>()
  for (const field of (messages[message] ?? '').split(', ')) {
    const [, name = '', type = '', keep] = field.split(' ')
    if (name === '.') for (const [inner, zero] of fieldsOf(type)) fields.set(inner, zero)
    else if (name !== '') {
      // Structs are never left out.
      fields.set(name, keep === '!!' ? 'null' : keep === '!' || type in messages ? 'shown' : 'left out')
    }
  }
  return fields
}
