/** Reads files that flags and arguments name. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { UsageError } from './io.ts'

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'reading it is not permitted',
}

/** Reads a file. `source` is the name of the file in error texts, such as `--ca ca.crt`. @throws UsageError */
export function readTextFile(source: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    const { code = '', message } = err as NodeJS.ErrnoException
    throw new UsageError(`${source}: ${reasons[code] ?? message}`)
  }
}

/** Reads a file and parses it as YAML or JSON. @throws UsageError */
export function readYamlFile(source: string, path: string): unknown {
  const text = readTextFile(source, path)
  try {
    return parse(text, { logLevel: 'error' })
  } catch (err) {
    throw new UsageError(`${source}: it is neither YAML nor JSON: ${(err as Error).message.split('\n')[0]}`)
  }
}
