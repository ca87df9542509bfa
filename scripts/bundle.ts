/**
 * Bundles the command into few files, which load faster than its sources (ADR 30). `npm install` writes them to `packages/cli/dist`
 * (`prepare`). `packages/cli/bin/run.js` runs the bundle if the sources are unchanged, otherwise the sources.
 */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const cli = fileURLToPath(new URL('../packages/cli/', import.meta.url))

/** Entry points of `bin/` by the name of their file in the bundle. */
const entries = { capstan: 'src/main.ts', envtest: 'src/envtest/main.ts' }

/** Additional entry points of the published command. In a checkout they run from their sources. */
const moreWhenPublished = { 'dev-child': 'src/dev/child-main.ts' }

/**
 * Whether a module is bundled: modules of our packages, and of packages that every start needs. Other packages are loaded from
 * node_modules; most starts need none.
 */
const isInside = (id: string): boolean => id.startsWith('.') || isAbsolute(id) || id.startsWith('@capstan/') || id === 'commander'

/** Writes the bundle to `folder` and returns its sources. @throws Error if a source cannot be bundled */
export async function bundle(folder: string): Promise<readonly string[]> {
  const began = Date.now()
  const { sources } = await writeBundle(folder, entries, placesOfSources(folder))
  // Written last, because a bundle without this file is not used.
  writeFileSync(join(folder, 'sources.json'), JSON.stringify(sources.map((path) => stateOf(path, folder, began))))
  return sources
}

export interface PublishedBundle {
  readonly sources: readonly string[]
  /** Packages that the bundle imports. */
  readonly packages: readonly string[]
}

/**
 * Writes the bundle of the published command to `folder`. It works without sources: it contains the programs that modules start. Modules
 * read files relative to the path that `placeOf` returns for their source.
 */
export function bundleForPublication(folder: string, placeOf: (source: string) => string): Promise<PublishedBundle> {
  return writeBundle(folder, { ...entries, ...moreWhenPublished }, placesInPackage(folder, placeOf))
}

async function writeBundle(folder: string, programs: Readonly<Record<string, string>>, places: Plugin): Promise<PublishedBundle> {
  const input = Object.fromEntries(Object.entries(programs).map(([name, source]) => [name, join(cli, source)]))
  const build = await rolldown({
    input,
    platform: 'node',
    external: (id) => !isInside(id),
    plugins: [places, builtinsInPart],
    logLevel: 'warn',
  })
  try {
    rmSync(folder, { recursive: true, force: true })
    const { output } = await build.write({
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
    await build.close()
  }
}

/** Returns the package of an import: `yaml` for `yaml/util`. */
const packageOf = (id: string): string =>
  id
    .split('/')
    .slice(0, id.startsWith('@') ? 2 : 1)
    .join('/')

/** Modules loaded by `createRequire`, which the bundler does not detect. */
const required = /\bcreateRequire\(new URL\([^()]*\)\.href\)\("([^"]+)"\)/g

/** Matches `new URL('./worker.ts', import.meta.url)`, a separate program. */
const ownProgram = /\bnew URL\(['"]([^'"`]+\.ts)['"], import\.meta\.url\)/g

/**
 * Replaces `import.meta.url` of each source with the path that `placeOf` returns for it, and bundles the programs that it starts.
 */
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
    const sourcePath = JSON.stringify(relative(folder, placeOf(id)).replaceAll(sep, '/'))
    return withPrograms
      .replaceAll(/import\.meta(\.url\b)?/g, (_, url) => {
        if (!url) this.error(`${id} uses another member of import.meta than url, which a bundle does not support`)
        return `new URL(${sourcePath}, import.meta.url).href`
      })
      .replaceAll('globalThis.bundleUrl', 'import.meta.url')
  },
})

/** Replaces `import.meta.url` of each source with the path of the source, so that it finds the files next to it. */
const placesOfSources = (folder: string): Plugin => ({
  name: 'places of sources',
  transform(code, id) {
    if (id.includes('/node_modules/')) return null
    const sourcePath = JSON.stringify(relative(folder, id).replaceAll(sep, '/'))
    return code.replaceAll(/import\.meta(\.url\b)?/g, (_, url) => {
      if (!url) this.error(`${id} uses another member of import.meta than url, which a bundle does not support`)
      return `new URL(${sourcePath}, import.meta.url).href`
    })
  },
})

/**
 * An import of a module of Node reads all of its exports, and reading some of them loads further modules: `node:http` loads all of
 * `fetch`, which takes 20 ms. `getBuiltinModule` with destructuring reads only the named exports.
 */
const builtinsInPart: Plugin = {
  name: 'builtins in part',
  renderChunk(code) {
    const changed = code.replaceAll(
      /^import (?:(.+) from )?"(node:[^"]+)";$/gm,
      (line, names: string | undefined, name: string) => {
        const module = `globalThis.process.getBuiltinModule("${name}")`
        if (names === undefined) return `${module};`
        if (/[,*]/.test(names.replace(/^\{.*\}$/, '')))
          this.error(`a bundle supports only named imports or one default import of a Node module: ${line}`)
        return `const ${names.replaceAll(' as ', ': ')} = ${module};`
      },
    )
    return { code: changed }
  },
}

/**
 * Returns the path, modification time and size of a bundled source, which `bin/run.js` compares. The time is 0 for a source that was
 * written during the bundling, so that the bundle is not used.
 */
function stateOf(path: string, folder: string, began: number): readonly [string, number, number] {
  const { mtimeMs, size } = statSync(path)
  return [relative(folder, path), mtimeMs < began ? mtimeMs : 0, size]
}

if (import.meta.main) {
  const sources = await bundle(join(cli, 'dist'))
  console.log(`packages/cli/dist: bundled the command from ${sources.length} sources`)
}
