/** Finds the module of an extension, and the name and settings in its project's manifests. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isRecord, messageOf } from '@capstan/kube'
import { parseAllDocuments } from 'yaml'
import { UsageError } from '../io.ts'

const moduleNames = ['extension.ts', 'extension.mts', 'extension.js', 'extension.mjs', 'src/extension.ts', 'src/extension.js']

/**
 * Returns the path of the extension module. `target` is the module itself, or a folder that contains it under one of `moduleNames`.
 * @throws UsageError when there is none
 */
export function extensionModule(target = '.'): string {
  const path = resolve(target)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) throw new UsageError(`there is no ${target}`, '`capstan new extension NAME` writes an extension to begin with.')
  if (!stats.isDirectory()) return path
  const name = moduleNames.find((candidate) => existsSync(join(path, candidate)))
  if (name !== undefined) return join(path, name)
  throw new UsageError(
    `there is no extension in ${target}: expected extension.ts`,
    'Name its module, or begin with `capstan new extension NAME`.',
  )
}

/** Fields of the first ExtensionConfig in the project's manifests. Both are absent if the manifests have no ExtensionConfig. */
export interface Registration {
  readonly name?: string
  readonly settings?: { readonly [name: string]: string }
}

/** Returns the project folder: the nearest folder with a package.json, otherwise the folder of the module. */
export function projectOf(module: string): string {
  for (let folder = dirname(module); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(module)
  }
}

export const manifestsOf = (project: string): string[] =>
  globSync('manifests/*.{yaml,yml}', { cwd: project }).map((name) => join(project, name))

/** Reads the first ExtensionConfig in the project's manifests; empty if there is none. @throws Error naming a file that cannot be parsed */
export function registrationOf(project: string): Registration {
  for (const file of manifestsOf(project)) {
    for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
      if (document.errors.length > 0) throw new Error(`Cannot read ${file}: ${messageOf(document.errors[0])}`)
      const object: unknown = document.toJS()
      if (!isRecord(object) || object.kind !== 'ExtensionConfig') continue
      const { metadata, spec } = object
      return {
        ...(isRecord(metadata) && typeof metadata.name === 'string' ? { name: metadata.name } : {}),
        ...(isRecord(spec) && isRecord(spec.settings) ? { settings: spec.settings as { [name: string]: string } } : {}),
      }
    }
  }
  return {}
}
