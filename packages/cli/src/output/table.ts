import { largest } from '@capstan/kube'
import { oneLine } from './one-line.ts'

/** Rows under a heading, as kubectl prints them: columns as wide as their widest cell, three spaces apart. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [heading, ...rows.map((row) => row.map(oneLine))]
  const widths = heading.map((_, column) => largest(all.map((row) => (row[column] ?? '').length)))
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('   ')
      .trimEnd(),
  )
}
