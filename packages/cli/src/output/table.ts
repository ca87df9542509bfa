import { largest } from '@capstan/kube'
import { oneLine } from './one-line.ts'

/** Formats rows under a heading as kubectl does: columns as wide as their widest cell, three spaces apart. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [heading, ...rows.map((row) => row.map(oneLine))]
  const widths = heading.map((_, column) => largest(lines.map((row) => (row[column] ?? '').length)))
  return lines.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('   ')
      .trimEnd(),
  )
}
