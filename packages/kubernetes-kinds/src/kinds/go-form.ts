/**
 * Normalizes objects to the form that Go's JSON encoder gives them: zero values that Go omits are removed, times that it always shows are
 * `null`, quantities and times have their canonical form. Lists that Go shows as `null` are normalized by the code of each kind. The table
 * of protobuf messages, which is generated from the same Go types, determines which fields are omitted.
 */
import { badRequest, isNumeric, isRecord, messageOf, parseQuantity, quantityText } from '@capstan/kube'
import { type Component, componentOf, targetOf } from './catalog.ts'
import { goFields } from './go-fields.ts'

/** Changes a value in place, and returns the value or its replacement. */
type Form = (value: unknown) => unknown

const forms = new Map<string, Form>()

/** Normalizes a draft of an object whose types have been checked. */
export function goForm(component: string, object: { [field: string]: unknown }): void {
  const { metadata } = object
  formOf(component)(object)
  // The server normalizes metadata separately.
  object.metadata = metadata
}

function formOf(name: string): Form {
  const cached = forms.get(name)
  if (cached) return cached
  const scalar = scalars[name.slice(name.lastIndexOf('.') + 1)]
  if (scalar && name.startsWith('io.k8s.apimachinery.')) {
    forms.set(name, scalar)
    return scalar
  }
  let compiled: Form | undefined
  // Types may be recursive: the form is registered before it is compiled.
  const form: Form = (value) => (compiled ??= structForm(name))(value)
  forms.set(name, form)
  return form
}

interface Member {
  readonly name: string
  readonly form: Form | undefined
  readonly omitsZero: boolean
  /** Value when the field is absent. */
  readonly absent: null | undefined
}

function structForm(name: string): Form {
  const component = componentOf(name)
  if (!component) throw new TypeError(`no built-in schema ${name}`)
  const { properties, required = [] } = component
  if (!properties) return memberForm(component) ?? ((value) => value)
  const go = goFields(name)
  const members = Object.entries(properties).map(([field, schema]): Member => {
    const target = targetOf(schema)
    const isTime = target !== undefined && /\.(Time|MicroTime)$/.test(target)
    const zero = go.get(field)
    const omitsZero = zero === 'left out'
    const showsTime = isTime && ((omitsZero && field !== 'creationTimestamp') || required.includes(field))
    return {
      name: field,
      form: memberForm(schema),
      omitsZero: omitsZero && !isTime,
      absent: showsTime || zero === 'null' ? null : undefined,
    }
  })
  return (value) => {
    if (!isRecord(value)) return value
    for (const { name: field, form, omitsZero, absent } of members) {
      const member = value[field]
      if (member === undefined) {
        if (absent === null) value[field] = null
        continue
      }
      if (omitsZero && isZero(member)) {
        delete value[field]
        continue
      }
      if (!form) continue
      const formed = form(member)
      if (formed !== member) value[field] = formed
    }
    return value
  }
}

function memberForm(schema: Component): Form | undefined {
  const target = targetOf(schema)
  if (target !== undefined) return formOf(target)
  if (schema.items) {
    const item = memberForm(schema.items)
    return item && ((list) => (Array.isArray(list) ? replaceAll(list, list.keys(), item) : list))
  }
  if (typeof schema.additionalProperties === 'object') {
    const isResourceList = targetOf(schema.additionalProperties)?.endsWith('.Quantity') === true
    const entry = isResourceList ? resourceForm : memberForm(schema.additionalProperties)
    return entry && ((map) => (isRecord(map) ? replaceAll(map, Object.keys(map), entry) : map))
  }
  return undefined
}

function replaceAll(container: object, keys: Iterable<string | number>, form: Form): object {
  const members = container as { [key: string | number]: unknown }
  for (const key of keys) {
    const formed = form(members[key])
    if (formed !== members[key]) members[key] = formed
  }
  return container
}

const isZero = (value: unknown): boolean =>
  value === '' || value === 0 || value === false || (typeof value === 'object' && value !== null && !hasMembers(value))

function hasMembers(value: object): boolean {
  for (const _ in value) return true
  return false
}

const scalars: { readonly [kind: string]: Form } = {
  Quantity: quantityForm,
  Time: timeForm,
  MicroTime: microTimeForm,
}

function quantityForm(value: unknown): unknown {
  if (typeof value !== 'string' && !isNumeric(value)) return value
  return quantityText(readQuantity(value))
}

/** Upstream: amounts in resource lists are rounded up to thousandths. */
function resourceForm(value: unknown): unknown {
  if (typeof value !== 'string' && !isNumeric(value)) return value
  const { nano, format } = readQuantity(value)
  const remainder = nano % Milli
  return quantityText({ nano: remainder > 0n ? nano + Milli - remainder : nano - remainder, format })
}

const Milli = 1_000_000n

/** @throws StatusError BadRequest */
function readQuantity(value: string | number | bigint) {
  try {
    return parseQuantity(String(value))
  } catch (err) {
    throw badRequest(messageOf(err))
  }
}

function timeForm(value: unknown): unknown {
  if (typeof value !== 'string' || PlainTime.test(value)) return value
  return `${new Date(value).toISOString().slice(0, 19)}Z`
}
const PlainTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

function microTimeForm(value: unknown): unknown {
  if (typeof value !== 'string' || PlainMicroTime.test(value)) return value
  const fraction = /\.(\d+)/.exec(value)?.[1] ?? ''
  return `${new Date(value).toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`
}
const PlainMicroTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
