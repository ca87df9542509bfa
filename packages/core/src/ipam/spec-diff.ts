/**
 * Formats the difference of two specs as github.com/google/go-cmp does for Go structs, for upstream's rejection texts. Pure. Long strings
 * that are equal in part are shown as a whole, where go-cmp splits them.
 */
import { equal, largest } from '@capstan/kube'

/** A Go struct: its name, and its fields with their JSON names. A field that is a struct also has the type of this struct. */
export interface GoStruct {
  readonly name: string
  readonly fields: { readonly [field: string]: string | readonly [json: string, type: GoStruct] }
}

type Value = { readonly [field: string]: unknown }

/** One field of the output; `text` may have several lines. */
interface Row {
  readonly mark: ' ' | '-' | '+'
  readonly name: string
  readonly text: string
}

/** Returns the difference of two specs of the Go type `type`. */
export const specDiff = (before: Value, after: Value, type: GoStruct): string => structDiff(before, after, type, '  ').trim()

function structDiff(before: Value, after: Value, type: GoStruct, indent: string): string {
  const fields = Object.entries(type.fields).map(([name, field]) => {
    const [json, nested] = typeof field === 'string' ? [field, undefined] : field
    const [oldValue, newValue] = [before[json], after[json]]
    return { name, nested, oldValue, newValue, isSame: equal(oldValue ?? '', newValue ?? '') }
  })
  const rows: (Row | string)[] = []
  const isNearDifference = fields.map((_, index) =>
    fields.some((field, fieldIndex) => !field.isSame && Math.abs(fieldIndex - index) <= ContextFields),
  )
  let hidden = 0
  const flush = () => {
    if (hidden > 0) rows.push(`... // ${hidden} identical fields`)
    hidden = 0
  }
  for (const [index, { name, nested, oldValue, newValue, isSame }] of fields.entries()) {
    if (!isNearDifference[index] && isWorthHiding(isNearDifference, index)) {
      hidden++
      continue
    }
    flush()
    if (isSame) rows.push({ mark: ' ', name, text: nested ? structText(oldValue as Value, nested) : valueText(oldValue) })
    else if (nested && hasSameField(oldValue as Value, newValue as Value, nested)) {
      rows.push({ mark: ' ', name, text: structDiff(oldValue as Value, newValue as Value, nested, `${indent}  `) })
    } else {
      const text = (value: unknown) => (nested ? nested.name + structText(value as Value, nested) : valueText(value))
      rows.push({ mark: '-', name, text: text(oldValue) }, { mark: '+', name, text: text(newValue) })
    }
  }
  flush()
  return [`${type.name}{`, ...alignRows(rows, indent), `${indent}}`].join('\n')
}

/** Equal fields at most this far from a difference are printed, as go-cmp does. */
const ContextFields = 2

/**
 * Returns whether a field that is not within `ContextFields` of a difference is hidden. A single such field is printed, because a line with
 * the count would be as long.
 */
function isWorthHiding(isNearDifference: readonly boolean[], index: number): boolean {
  return isNearDifference[index - 1] === false || isNearDifference[index + 1] === false
}

/** Whether the structs have an equal field. Otherwise they are printed as a whole, as a removed and an added line. */
const hasSameField = (oldValue: Value, newValue: Value, { fields }: GoStruct): boolean =>
  Object.values(fields).some((json) => typeof json === 'string' && equal(oldValue[json] ?? '', newValue[json] ?? ''))

/** Aligns values in one column across consecutive single-line rows. */
function alignRows(rows: readonly (Row | string)[], indent: string): string[] {
  const lines: string[] = []
  let block: Row[] = []
  const flush = () => {
    const width = Math.max(0, largest(block.map(({ name }) => name.length)))
    for (const { mark, name, text } of block) lines.push(`${mark}${indent.slice(1)}  ${`${name}:`.padEnd(width + 1)} ${text},`)
    block = []
  }
  for (const row of rows) {
    if (typeof row === 'string') {
      flush()
      lines.push(`${indent}  ${row}`)
    } else if (row.text.includes('\n')) {
      flush()
      lines.push(`${row.mark}${indent.slice(1)}  ${row.name}: ${row.text},`)
    } else block.push(row)
  }
  flush()
  return lines
}

const structText = (value: Value, { fields }: GoStruct): string =>
  `{${Object.entries(fields)
    .map(([name, json]) => `${name}: ${valueText(value[json as string])}`)
    .join(', ')}}`

/** Formats a number with `&`, as go-cmp does for pointers: upstream's types have pointers to numbers. */
const valueText = (value: unknown): string => (typeof value === 'number' ? `&${value}` : JSON.stringify(value ?? ''))
