/** Builds the published package of the `capstan` command: its bundle and the files that it reads, without sources. */
import { chmodSync, cpSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { bundleForPublication } from '../bundle.ts'
import { copyTexts, write } from './library.ts'
import { publishedManifest, root, type SourcePackage, sourcePackages } from './manifests.ts'

/** Name of the folder in the published package that contains files of our other packages. */
const otherPackages = 'packages'

/**
 * Writes the package to `target`.
 *
 * @throws Error if the bundle imports a package that is not a dependency of any of our packages, or if a bundled package has no licence file
 */
export async function buildCommand(source: SourcePackage, target: string): Promise<void> {
  const { folder } = source
  const packageFolder = join(root, 'packages', folder)
  mkdirSync(target, { recursive: true })
  const publishedPathOf = (path: string): string => {
    const inCheckout = relative(root, path)
    const inPackage = relative(packageFolder, path)
    return inPackage.startsWith('..')
      ? join(target, otherPackages, inCheckout.replace(/^packages\//, ''))
      : join(target, inPackage)
  }
  const { sources, packages } = await bundleForPublication(join(target, 'dist'), publishedPathOf)

  const dataFolders = new Set<string>()
  for (const name of new Set(
    sources.map((path) => relative(root, path).split('/')).flatMap(([top, name]) => (top === 'packages' ? name! : [])),
  )) {
    const files = globSync('{src/**/*.json,demo/**,fixtures/**,templates/**}', {
      cwd: join(root, 'packages', name),
      exclude: ['**/testdata/**'],
      withFileTypes: true,
    }).filter((entry) => entry.isFile())
    for (const entry of files) {
      const path = join(entry.parentPath, entry.name)
      const destination = publishedPathOf(path)
      dataFolders.add(relative(target, destination).split('/')[0]!)
      cpSync(path, destination)
    }
  }
  cpSync(join(packageFolder, 'bin'), join(target, 'bin'), { recursive: true })
  chmodSync(join(target, 'bin/capstan.js'), 0o755)
  copyTexts(folder, target)
  write(join(target, 'THIRD_PARTY_LICENSES'), licencesOf(sources))
  const published = publishedManifest(source, {
    exports: { './package.json': './package.json' },
    dependencies: versionsOf(packages),
    files: ['bin', 'dist', 'THIRD_PARTY_LICENSES', ...dataFolders],
    sideEffects: ['./bin/*.js', './dist/*.js'],
  })
  write(join(target, 'package.json'), `${JSON.stringify(published, undefined, 2)}\n`)
}

/** Returns the versions that the `package.json` files of our packages declare for dependencies. */
function versionsOf(names: readonly string[]): Record<string, string> {
  const declaredVersions = Object.assign({}, ...sourcePackages().map(({ manifest }) => manifest.dependencies)) as Record<
    string,
    string
  >
  return Object.fromEntries(
    names.map((name) => {
      const version = declaredVersions[name]
      if (version === undefined) throw new Error(`The bundle of the command imports ${name}, which no package.json names`)
      return [name, version]
    }),
  )
}

/** Returns the licence texts of third-party packages in the bundle. */
function licencesOf(sources: readonly string[]): string {
  const folders = new Set(sources.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? []))
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        name: string
        version: string
      }
      const file = ['LICENSE', 'LICENSE.md', 'license'].map((fileName) => join(folder, fileName)).find((path) => existsSync(path))
      if (file === undefined) throw new Error(`${name} is in the bundle of the command and has no LICENSE`)
      return `${name} ${version}\n\n${readFileSync(file, 'utf8').trim()}\n`
    })
    .join('\n----\n\n')
}
