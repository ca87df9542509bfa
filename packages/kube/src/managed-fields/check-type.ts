/** Validates values against their types. Server-side apply rejects invalid values before it merges. */
import { isNumeric, writeJSON } from '../json-text.ts'
import { goText, goTypeName } from '../go-text.ts'
import { isRecord } from '../json.ts'
import { itemElement } from './list-item.ts'
import { elementText, fieldElement } from './path-element.ts'
import type { ListType, MapType, ScalarType, Type } from './type.ts'
import { formsOf, memberType } from './type.ts'

/**
 * Returns the errors of a value, with upstream's texts: `.spec.replicas: expected numeric (int or float), got string`. With
 * `allowDuplicates`, several items of a list may have the same keys or the same value.
 */
export function typeProblems(type: Type, value: unknown, options: { allowDuplicates: boolean }): string[] {
  const problems: string[] = []
  check(type, value, '', (path, text) => problems.push(path === '' ? text : `${path}: ${text}`), options.allowDuplicates)
  return problems
}

/** Joins several errors into one text in upstream's format. */
export const problemsText = (problems: readonly string[]): string =>
  problems.length === 1 ? problems[0]! : ['errors:', ...problems.map((problem) => `  ${problem}`)].join('\n')

type Report = (path: string, text: string) => void

function check(type: Type, value: unknown, path: string, report: Report, allowDuplicates: boolean): void {
  const { map, scalar, list } = formsOf(type, value)
  if (map) checkMap(map, value, path, report, allowDuplicates)
  else if (scalar) checkScalar(scalar, value, path, report)
  else if (list) checkList(list, value, path, report, allowDuplicates)
}

function checkScalar(scalar: ScalarType, value: unknown, path: string, report: Report): void {
  if (value === null || value === undefined) return
  switch (scalar) {
    case 'numeric':
      if (!isNumeric(value)) report(path, `expected numeric (int or float), got ${goTypeName(value)}`)
      return
    case 'string':
      if (typeof value !== 'string') report(path, `expected string, got &value.valueUnstructured{Value:${goLiteral(value)}}`)
      return
    case 'boolean':
      if (typeof value !== 'boolean') report(path, `expected boolean, got &{${goText(value)}}`)
      return
    case 'untyped':
      if (typeof value === 'object') report(path, `expected any scalar, got &{${goText(value)}}`)
  }
}

function checkList(list: ListType, value: unknown, path: string, report: Report, allowDuplicates: boolean): void {
  if (value === null || value === undefined) return
  if (!Array.isArray(value)) return report(path, `expected list, got &{${goText(value)}}`)
  const seenElements = new Set<string>()
  for (const [index, item] of value.entries()) {
    if (list.atomic) {
      check(list.element, item, `${path}[${index}]`, report, allowDuplicates)
      continue
    }
    let element: string
    try {
      element = itemElement(list, item)
    } catch (err) {
      return report(path, `element ${index}: ${(err as Error).message}`)
    }
    if (seenElements.has(element) && !allowDuplicates) report(path, `duplicate entries for key ${elementText(element)}`)
    seenElements.add(element)
    check(list.element, item, path + elementText(element), report, allowDuplicates)
  }
}

function checkMap(map: MapType, value: unknown, path: string, report: Report, allowDuplicates: boolean): void {
  if (value === null || value === undefined) return
  if (!isRecord(value)) return report(path, `expected map, got &{${goText(value)}}`)
  for (const name of Object.keys(value)) {
    if (value[name] === undefined) continue
    const type = memberType(map, name)
    const memberPath = path + elementText(fieldElement(name))
    if (!type) report(memberPath, 'field not declared in schema')
    else check(type, value[name], memberPath, report, allowDuplicates)
  }
}

/** Formats a value as Go's %#v does, but with the string escapes of JSON. */
function goLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goLiteral).join(', ')}}`
  if (!isRecord(value)) return value === null ? 'interface {}(nil)' : writeJSON(value)
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${goLiteral(value[key])}`)
  return `map[string]interface {}{${members.join(', ')}}`
}
