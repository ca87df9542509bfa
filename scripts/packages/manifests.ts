/** Reads the `package.json` files of the checkout and of its packages, and makes those of the published packages. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The fields of a package's `package.json` that scripts read. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly engines: { readonly node: string }
  readonly exports: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly bin?: Readonly<Record<string, string>>
}

/** A package of the checkout; `folder` is the name of its folder in packages/. */
export interface SourcePackage {
  readonly folder: string
  readonly manifest: Manifest
}

export function sourcePackages(): SourcePackage[] {
  return globSync('packages/*/package.json', { cwd: root })
    .sort()
    .map((file) => ({ folder: file.split('/')[1]!, manifest: JSON.parse(readFileSync(join(root, file), 'utf8')) as Manifest }))
}

export const rootManifest = (): { readonly version: string; readonly repository?: unknown } =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string; repository?: unknown }

/** The fields of a published `package.json` that the build of the package determines. */
interface Published {
  readonly exports?: unknown
  readonly dependencies: Readonly<Record<string, string>>
  readonly files: readonly string[]
  readonly sideEffects: false | readonly string[]
}

/** Returns the `package.json` of a published package. */
export function publishedManifest({ folder, manifest }: SourcePackage, { exports, dependencies, files, sideEffects }: Published) {
  const { repository } = rootManifest()
  return {
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    keywords: ['kubernetes', 'cluster-api'],
    license: manifest.license,
    ...(repository === undefined ? {} : { repository: { ...asObject(repository), directory: `packages/${folder}` } }),
    type: 'module',
    sideEffects,
    files,
    ...(exports === undefined ? {} : { exports }),
    ...(manifest.bin ? { bin: manifest.bin } : {}),
    engines: manifest.engines,
    dependencies,
    publishConfig: { access: 'public', provenance: true },
  }
}

const asObject = (repository: unknown): object =>
  typeof repository === 'string' ? { type: 'git', url: repository } : (repository as object)
