/**
 * The command in few files, which load in half the time of its 400 sources: `packages/cli/dist`, made by `npm install`
 * (`prepare`). `packages/cli/bin/run.js` runs it while the sources are those that it was made of.
 */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const cli = fileURLToPath(new URL('../packages/cli/', import.meta.url))

/** Entry points of `bin/` by the name of their file in the bundle. */
const entries = { capstan: 'src/main.ts', envtest: 'src/envtest/main.ts' }

/** Programs that a published command has no sources of. */
const moreWhenPublished = { 'dev-child': 'src/dev/child-main.ts' }

/** Bundled packages: ours, and those that every start needs. Other packages are loaded from node_modules, since most starts need none. */
const isInside = (id: string): boolean => id.startsWith('.') || isAbsolute(id) || id.startsWith('@capstan/') || id === 'commander'

/** Writes the bundle to `folder` and returns its sources. @throws Error when a source cannot be bundled */
export async function bundle(folder: string): Promise<readonly string[]> {
  const began = Date.now()
  const { sources } = await writeBundle(folder, entries, placesOfSources(folder))
  // Last: a bundle without it is not used.
  writeFileSync(join(folder, 'sources.json'), JSON.stringify(sources.map((path) => stateOf(path, folder, began))))
  return sources
}

export interface PublishedBundle {
  readonly sources: readonly string[]
  /** Packages that the bundle imports. */
  readonly packages: readonly string[]
}

/**
 * Writes the bundle of the published command to `folder`, which works without any source: programs that modules start are in it, and
 * the files that they read are looked for where `placeOf` puts each source.
 */
export function bundleForPublication(folder: string, placeOf: (source: string) => string): Promise<PublishedBundle> {
  return writeBundle(folder, { ...entries, ...moreWhenPublished }, placesInPackage(folder, placeOf))
}

async function writeBundle(folder: string, programs: Readonly<Record<string, string>>, places: Plugin): Promise<PublishedBundle> {
  const input = Object.fromEntries(Object.entries(programs).map(([name, source]) => [name, join(cli, source)]))
  const made = await rolldown({
    input,
    platform: 'node',
    external: (id) => !isInside(id),
    plugins: [places, builtinsInPart],
    logLevel: 'warn',
  })
  try {
    rmSync(folder, { recursive: true, force: true })
    const { output } = await made.write({
      dir: folder,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
    })
    const chunks = output.filter((file) => file.type === 'chunk')
    const ids = chunks.flatMap(({ code, imports, dynamicImports }) => [
      ...imports,
      ...dynamicImports,
      ...[...code.matchAll(required)].map(([, name]) => name!),
    ])
    const packages = ids.filter((id) => !id.startsWith('node:') && !id.endsWith('.js') && !id.endsWith('.ts')).map(packageOf)
    return { sources: chunks.flatMap(({ moduleIds }) => moduleIds.filter(isAbsolute)), packages: [...new Set(packages)].sort() }
  } finally {
    await made.close()
  }
}

/** `yaml/util`: yaml. */
const packageOf = (id: string): string =>
  id
    .split('/')
    .slice(0, id.startsWith('@') ? 2 : 1)
    .join('/')

/** Modules loaded by `createRequire`, which the bundler does not detect. */
const required = /\bcreateRequire\(new URL\([^()]*\)\.href\)\("([^"]+)"\)/g

/** Matches `new URL('./worker.ts', import.meta.url)`, a separate program. */
const ownProgram = /\bnew URL\(['"]([^'"`]+\.ts)['"], import\.meta\.url\)/g

/** As in a package without sources: `placeOf` names the path that a source would have there. */
const placesInPackage = (folder: string, placeOf: (source: string) => string): Plugin => ({
  name: 'places in a package',
  transform(code, id) {
    if (id.includes('/node_modules/')) return null
    const withPrograms = code.replaceAll(ownProgram, (_, path: string) => {
      const program = resolve(dirname(id), path)
      const fileName = `${relative(join(cli, '../..'), program).replace(/\.ts$/, '').replaceAll(/\W+/g, '-')}.js`
      this.emitFile({ type: 'chunk', id: program, fileName })
      return `new URL('./${fileName}', globalThis.bundleUrl)`
    })
    const own = JSON.stringify(relative(folder, placeOf(id)).replaceAll(sep, '/'))
    return withPrograms
      .replaceAll(/import\.meta(\.url\b)?/g, (_, url) => {
        if (!url) this.error(`${id} asks import.meta for more than its url, which a bundle does not know`)
        return `new URL(${own}, import.meta.url).href`
      })
      .replaceAll('globalThis.bundleUrl', 'import.meta.url')
  },
})

/** A source in the bundle looks for the files beside it where they have always been. */
const placesOfSources = (folder: string): Plugin => ({
  name: 'places of sources',
  transform(code, id) {
    if (id.includes('/node_modules/')) return null
    const own = JSON.stringify(relative(folder, id).replaceAll(sep, '/'))
    return code.replaceAll(/import\.meta(\.url\b)?/g, (_, url) => {
      if (!url) this.error(`${id} asks import.meta for more than its url, which a bundle does not know`)
      return `new URL(${own}, import.meta.url).href`
    })
  },
})

/**
 * An import of a module of Node's reads all that it exports, and some loads more when it is read: `node:http` all of `fetch`, which
 * takes 20 ms. Asked for like this, only what is named is read.
 */
const builtinsInPart: Plugin = {
  name: 'builtins in part',
  renderChunk(code) {
    const changed = code.replaceAll(
      /^import (?:(.+) from )?"(node:[^"]+)";$/gm,
      (line, names: string | undefined, name: string) => {
        const module = `globalThis.process.getBuiltinModule("${name}")`
        if (names === undefined) return `${module};`
        if (/[,*]/.test(names.replace(/^\{.*\}$/, ''))) this.error(`a bundle cannot have all at once of ${line}`)
        return `const ${names.replaceAll(' as ', ': ')} = ${module};`
      },
    )
    return { code: changed }
  },
}

/** Identifies a bundled source for `bin/run.js`. A source that was written during the bundling gets none. */
function stateOf(path: string, folder: string, began: number): readonly [string, number, number] {
  const { mtimeMs, size } = statSync(path)
  return [relative(folder, path), mtimeMs < began ? mtimeMs : 0, size]
}

if (import.meta.main) {
  const sources = await bundle(join(cli, 'dist'))
  console.log(`packages/cli/dist: the command, of ${sources.length} sources`)
}
