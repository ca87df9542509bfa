/** Where a new project installs Capstan's packages from. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout that this tool runs from, if it does. */
export function checkout(): string | undefined {
  const root = fileURLToPath(new URL('../../../..', import.meta.url))
  const manifest = join(root, 'package.json')
  if (!existsSync(manifest)) return undefined
  const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }
  return name === 'capstan-workspace' ? root : undefined
}

/**
 * Returns the version or the place that a project depends on: published versions or, with the root of a checkout, its folders, so that
 * changes of the checkout can be tried before they are published. Programs for other machines than this one are left out then.
 */
export function dependencyFrom(root: string | undefined): (name: string, version: string) => string | undefined {
  if (root === undefined) return (_name, version) => version
  return (name) => {
    const [, own] = /^@capstan\/(.+)$/.exec(name) ?? []
    const folder = own === undefined ? join(root, 'node_modules', name) : join(root, 'packages', own)
    return existsSync(folder) ? `file:${folder}` : undefined
  }
}
