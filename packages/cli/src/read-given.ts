/** Reads files that flags and arguments name. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { UsageError } from './io.ts'

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'reading it is not permitted',
}

/** Reads a file. `given` is its flag and name for messages, such as `--ca ca.crt`. @throws UsageError */
export function textGiven(given: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    const { code = '', message } = err as NodeJS.ErrnoException
    throw new UsageError(`${given}: ${reasons[code] ?? message}`)
  }
}

/** Parses the file as YAML or JSON. @throws UsageError */
export function valueGiven(given: string, path: string): unknown {
  const text = textGiven(given, path)
  try {
    return parse(text, { logLevel: 'error' })
  } catch (err) {
    throw new UsageError(`${given}: it is neither YAML nor JSON: ${(err as Error).message.split('\n')[0]}`)
  }
}
