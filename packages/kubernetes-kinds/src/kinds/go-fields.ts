/** How JSON shows the zero values of Go types, from the table of protobuf messages, which is generated from the same types. */
import { messages } from '../protobuf-messages.ts'

/** How JSON shows the zero value of a field; `null`: as null. */
export type Zero = 'shown' | 'omitted' | 'null'

/** Fields of the Go type of a schema, including fields of embedded types; empty for an unknown type. */
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
      // Structs are never omitted.
      fields.set(name, keep === '!!' ? 'null' : keep === '!' || type in messages ? 'shown' : 'omitted')
    }
  }
  return fields
}
