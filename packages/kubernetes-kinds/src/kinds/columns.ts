/** Helpers for the columns and the field selectors of built-in kinds. Upstream: pkg/printers/internalversion, v1.36. */
import { type LabelSelector, labelSelector, type UnknownObject } from '@capstan/kube'
import { type PrinterColumn, memberAt, memberText, nameDescription } from '@capstan/apiserver/kinds'

type Cell = PrinterColumn['cell']

export const column = (name: string, cell: Cell, options: Partial<PrinterColumn> = {}): PrinterColumn => ({
  name,
  type: 'string',
  cell,
  ...options,
})
/** Creates a column that is shown only with `-o wide`. */
export const wide = (name: string, cell: Cell, options: Partial<PrinterColumn> = {}): PrinterColumn =>
  column(name, cell, { priority: 1, ...options })

export const nameColumn = column('Name', ({ metadata }) => metadata.name, { format: 'name', description: nameDescription })
export const ageColumn = column('Age', ({ metadata }) => metadata.creationTimestamp ?? null, { type: 'date' })

/** Returns the member at a path; `undefined` if it is absent. */
export const at = (object: UnknownObject, ...path: string[]): unknown => memberAt(object, path)
/** Returns a scalar member as text; the empty string for absent members, objects and lists. */
export const text = (object: UnknownObject, ...path: string[]): string => memberText(object, path)
/** Returns a member as a number; 0 if it is absent. */
export const number = (object: UnknownObject, ...path: string[]): number => Number(at(object, ...path) ?? 0)
/** Returns a list member; an empty list if it is absent. */
export const list = <T>(object: UnknownObject, ...path: string[]): T[] => (at(object, ...path) as T[] | undefined) ?? []

export const orNone = (value: string): string => (value === '' ? '<none>' : value)
export const orUnknown = (value: string): string => (value === '' ? '<unknown>' : value)
/** Returns the total number of keys in the given members of an object. */
export const count = (object: UnknownObject, ...members: string[]): number =>
  members.reduce((sum, member) => sum + Object.keys((object[member] as object | undefined) ?? {}).length, 0)

/** Returns a function that reads a scalar member as text, for field selectors. */
export const field =
  (...path: string[]) =>
  (object: UnknownObject): string =>
    memberText(object, path)

/** Formats labels as `a=1,b=2`; `<none>` without labels. */
export const pairs = (labels: unknown): string =>
  orNone(
    Object.entries((labels as Record<string, string> | undefined) ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(','),
  )

/** Creates a column with a label selector, formatted by `selectorText`. The column is shown only with `-o wide`. */
export const selectorColumn = (selectorOf: (object: UnknownObject) => unknown): PrinterColumn =>
  wide('Selector', (object) => selectorText(selectorOf(object)))

/** Formats a label selector as in a query: `a=1,b in (2,3)`; `<none>` for an absent or empty selector. */
export function selectorText(selector: unknown): string {
  if (!selector) return '<none>'
  const { text } = labelSelector(selector as LabelSelector)
  return orNone(text)
}

/**
 * Creates columns with the names and images of the containers of a pod template. They are shown only with `-o wide`.
 * @param template path of the pod template; default: spec.template
 */
export function containerColumns(...template: string[]): PrinterColumn[] {
  const path = template.length > 0 ? template : ['spec', 'template']
  const valuesOfContainers = (o: UnknownObject, member: string) =>
    // oxlint-disable-next-line capstan/no-spread-arguments -- the path is a short constant
    list<Record<string, string>>(o, ...path, 'spec', 'containers')
      .map((container) => container[member] ?? '')
      .join(',')
  return [wide('Containers', (o) => valuesOfContainers(o, 'name')), wide('Images', (o) => valuesOfContainers(o, 'image'))]
}
