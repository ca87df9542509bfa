/** Determines from where a new project installs Capstan's packages. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Returns the root of the checkout from which this program runs; `undefined` if it was installed. */
export function checkout(): string | undefined {
  const root = fileURLToPath(new URL('../../../..', import.meta.url))
  const manifest = join(root, 'package.json')
  if (!existsSync(manifest)) return undefined
  const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }
  return name === 'capstan-workspace' ? root : undefined
}

/**
 * Returns a function that maps a package to its entry in a project's package.json. If `root` is absent, this entry is the version that the
 * function is given. If `root` is the root of a checkout, the entry is `file:` with the package's folder in the checkout, so that changes
 * can be tried before they are published; `undefined` if the package is not installed there, such as Node for another platform.
 */
export function dependencyFrom(root: string | undefined): (name: string, version: string) => string | undefined {
  if (root === undefined) return (_name, version) => version
  return (name) => {
    const [, packageOfCapstan] = /^@capstan\/(.+)$/.exec(name) ?? []
    const folder = packageOfCapstan === undefined ? join(root, 'node_modules', name) : join(root, 'packages', packageOfCapstan)
    return existsSync(folder) ? `file:${folder}` : undefined
  }
}
