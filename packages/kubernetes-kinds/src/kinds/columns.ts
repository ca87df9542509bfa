/** Helpers for the columns of built-in kinds. Upstream: pkg/printers/internalversion, v1.36. */
import { type LabelSelector, labelSelector, type UnknownObject } from '@capstan/kube'
import { type PrinterColumn, memberAt, memberText, nameDescription } from '@capstan/apiserver/kinds'

type Cell = PrinterColumn['cell']

export const column = (name: string, cell: Cell, options: Partial<PrinterColumn> = {}): PrinterColumn => ({
  name,
  type: 'string',
  cell,
  ...options,
})
/** Creates a column that is shown with `-o wide`. */
export const wide = (name: string, cell: Cell, options: Partial<PrinterColumn> = {}): PrinterColumn =>
  column(name, cell, { priority: 1, ...options })

export const nameColumn = column('Name', ({ metadata }) => metadata.name, { format: 'name', description: nameDescription })
export const ageColumn = column('Age', ({ metadata }) => metadata.creationTimestamp ?? null, { type: 'date' })

export const at = (object: UnknownObject, ...path: string[]): unknown => memberAt(object, path)
export const text = (object: UnknownObject, ...path: string[]): string => memberText(object, path)
export const number = (object: UnknownObject, ...path: string[]): number => Number(at(object, ...path) ?? 0)
export const list = <T>(object: UnknownObject, ...path: string[]): T[] => (at(object, ...path) as T[] | undefined) ?? []
export const orNone = (value: string): string => (value === '' ? '<none>' : value)
export const orUnknown = (value: string): string => (value === '' ? '<unknown>' : value)
/** Returns the number of keys in several members of an object. */
export const count = (object: UnknownObject, ...members: string[]): number =>
  members.reduce((sum, member) => sum + Object.keys((object[member] as object | undefined) ?? {}).length, 0)

/** Returns a function that reads a scalar member as text, for field selectors. */
export const field =
  (...path: string[]) =>
  (object: UnknownObject): string =>
    memberText(object, path)

/** Formats labels as `a=1,b=2`. */
export const pairs = (labels: unknown): string =>
  orNone(
    Object.entries((labels as Record<string, string> | undefined) ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(','),
  )

/** Creates a column with a label selector, in the form of a query. */
export const selectorColumn = (selectorOf: (object: UnknownObject) => unknown): PrinterColumn =>
  wide('Selector', (object) => selectorText(selectorOf(object)))

export function selectorText(selector: unknown): string {
  if (!selector) return '<none>'
  const { text } = labelSelector(selector as LabelSelector)
  return orNone(text)
}

/** Creates columns with the names and images of the containers of a pod template. */
export function containerColumns(...template: string[]): PrinterColumn[] {
  const path = template.length > 0 ? template : ['spec', 'template']
  const valuesOfContainers = (o: UnknownObject, member: string) =>
    // oxlint-disable-next-line capstan/no-spread-arguments -- a path in the source
    list<Record<string, string>>(o, ...path, 'spec', 'containers')
      .map((container) => container[member] ?? '')
      .join(',')
  return [wide('Containers', (o) => valuesOfContainers(o, 'name')), wide('Images', (o) => valuesOfContainers(o, 'image'))]
}
