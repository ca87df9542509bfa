/** Zero values of Go struct fields in JSON, from the table of protobuf messages, which is generated from the same Go types. */
import { messages } from '../protobuf-messages.ts'

/**
 * Whether Go's JSON encoder writes (`shown`) or omits (`omitted`) a field that is set to zero, such as 0, false or `""`. `null`: writes zero,
 * and writes null if the field is absent.
 */
export type Zero = 'shown' | 'omitted' | 'null'

/**
 * Returns the fields of the Go type of a schema such as `io.k8s.api.core.v1.Pod`, including fields of embedded types. Empty for an unknown
 * type, and for the types of CustomResourceDefinitions and APIServices.
 */
export const goFields = (component: string): ReadonlyMap<string, Zero> => fieldsOf(messageName(component))

/** Returns the name of a schema of `io.k8s.api` or `io.k8s.apimachinery` in the table: `core/v1.Pod` for `io.k8s.api.core.v1.Pod`. */
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
      // Go's encoder never omits structs (types in the table).
      fields.set(name, keep === '!!' ? 'null' : keep === '!' || type in messages ? 'shown' : 'omitted')
    }
  }
  return fields
}
