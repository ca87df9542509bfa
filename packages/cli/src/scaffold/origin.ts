/** Where a new project installs Capstan's packages from. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Returns the root of the checkout from which this tool runs; `undefined` if it was installed. */
export function checkout(): string | undefined {
  const root = fileURLToPath(new URL('../../../..', import.meta.url))
  const manifest = join(root, 'package.json')
  if (!existsSync(manifest)) return undefined
  const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }
  return name === 'capstan-workspace' ? root : undefined
}

/**
 * Returns a function for the version or location of a package in a project's package.json. Without `root` these are published versions. With
 * the root of a checkout they are its folders, so that changes can be tried before they are published; packages that are not installed there,
 * such as Node for another platform, are left out.
 */
export function dependencyFrom(root: string | undefined): (name: string, version: string) => string | undefined {
  if (root === undefined) return (_name, version) => version
  return (name) => {
    const [, packageOfCapstan] = /^@capstan\/(.+)$/.exec(name) ?? []
    const folder = packageOfCapstan === undefined ? join(root, 'node_modules', name) : join(root, 'packages', packageOfCapstan)
    return existsSync(folder) ? `file:${folder}` : undefined
  }
}
