/** Errors for changes of immutable parts, printed as upstream prints its Go structs: with all fields. */
import type { FieldError } from '@capstan/kube'
import { messages } from '../../protobuf-messages.ts'
import { inOrder, same } from '../same.ts'

/**
 * Returns an error if a value differs from the old value. `message` is the type of the value in the table of protobuf messages, which has
 * the fields of each struct in order.
 */
export function immutableStruct(field: string, message: string, value: object, old: unknown): FieldError[] {
  if (same(value, old)) return []
  // Go's encoder escapes these characters.
  const printed = JSON.stringify(inGo(message, value)).replaceAll(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)
  return [{ type: 'FieldValueInvalid', field, text: `Invalid value: ${printed}: field is immutable` }]
}

type Struct = { readonly [field: string]: unknown }

/** Returns a struct as Go prints it: with Go's field names, and with the zero values of absent fields. */
function inGo(message: string, value: Struct | object): object {
  const struct = value as Struct
  const result: { [name: string]: unknown } = {}
  for (const declaration of (messages[message] ?? '').split(', ')) {
    const [, name = '', type = '', zeroFlag] = declaration.split(' ')
    // Fields of embedded types are printed in the outer struct; those of the embedded metadata keep their JSON names.
    if (name === '.') Object.assign(result, inGo(type, struct))
    else if (name === 'metadata') Object.assign(result, struct.metadata)
    // Fields with the flag `!` or `!!` are pointers, or have no omitempty. Of these fields, only pointers, lists and maps can be absent.
    else if (name !== '') result[goName(name)] = memberInGo(type, struct[name] ?? undefined, zeroFlag !== undefined)
  }
  return result
}

const initialisms: { readonly [name: string]: string } = { cel: 'CEL', uid: 'UID', ips: 'IPs' }
const goName = (name: string): string => initialisms[name] ?? `${name.charAt(0).toUpperCase()}${name.slice(1)}`

function memberInGo(type: string, value: unknown, isPointer: boolean): unknown {
  if (type.startsWith('[]'))
    return (value as unknown[] | undefined)?.map((item) => memberInGo(type.slice(2), item, false)) ?? null
  if (type.startsWith('{}')) return inOrder(value as { [key: string]: unknown } | undefined) ?? null
  if (value === undefined && isPointer) return null
  if (type in messages) return inGo(type, (value ?? {}) as Struct)
  return value ?? zeroes[type] ?? null
}

const zeroes: { readonly [type: string]: unknown } = { string: '', int: 0, bool: false }
