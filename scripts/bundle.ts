/**
 * Bundles the command into few files, which load faster than its sources (ADR 30). `npm install` writes them to `packages/cli/dist`
 * (`prepare`). In a checkout, the function `run` in `packages/cli/bin/run.js` runs the bundle if the sources are unchanged, otherwise the
 * sources.
 */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const cli = fileURLToPath(new URL('../packages/cli/', import.meta.url))

/** Entry points of the programs `bin/capstan.js` and `bin/envtest.js`, by the name of their file in the bundle. */
const entries = { capstan: 'src/main.ts', envtest: 'src/envtest/main.ts' }

/** Additional entry points of the published command. In a checkout they run from their sources. */
const publishedOnlyEntries = { 'dev-child': 'src/dev/child-main.ts' }

/**
 * Reports whether an imported module is bundled: a module of our packages, or `commander`, which every start of `capstan` needs. Other
 * packages are loaded from node_modules; most starts need none of them.
 */
const isBundled = (id: string): boolean =>
  id.startsWith('.') || isAbsolute(id) || id.startsWith('@capstan/') || id === 'commander'

/** Writes the bundle of a checkout to `folder`, and returns the paths of its sources. @throws Error if a source cannot be bundled */
export async function bundle(folder: string): Promise<readonly string[]> {
  const began = Date.now()
  const { sources } = await writeBundle(folder, entries, sourceUrls(folder))
  // Written last, because a bundle without this file is not used.
  writeFileSync(join(folder, 'sources.json'), JSON.stringify(sources.map((path) => stateOf(path, folder, began))))
  return sources
}

/** Contents of a bundle. */
export interface Bundle {
  /** Paths of the bundled files, also those of bundled npm packages. */
  readonly sources: readonly string[]
  /** Names of the npm packages that the bundle imports. */
  readonly packages: readonly string[]
}

/**
 * Writes the bundle of the published command to `folder`. The bundle needs no sources: it also contains the programs that modules start.
 * `publishedPathOf` maps the path of a source to the path that its module has in the published package; the module reads files relative
 * to this path.
 */
export function bundleForPublication(folder: string, publishedPathOf: (source: string) => string): Promise<Bundle> {
  return writeBundle(folder, { ...entries, ...publishedOnlyEntries }, publishedUrls(folder, publishedPathOf))
}

/** Writes a bundle to `folder`, whose earlier files are deleted. The plugin `urls` replaces `import.meta.url` in our sources. */
async function writeBundle(folder: string, programs: Readonly<Record<string, string>>, urls: Plugin): Promise<Bundle> {
  const input = Object.fromEntries(Object.entries(programs).map(([name, source]) => [name, join(cli, source)]))
  const build = await rolldown({
    input,
    platform: 'node',
    external: (id) => !isBundled(id),
    plugins: [urls, builtinsWithoutImport],
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

/** Matches a module that `createRequire` loads. The bundler does not detect such modules. */
const required = /\bcreateRequire\(new URL\([^()]*\)\.href\)\("([^"]+)"\)/g

/** Matches `new URL('./worker.ts', import.meta.url)`, a program that a module starts. */
const ownProgram = /\bnew URL\(['"]([^'"`]+\.ts)['"], import\.meta\.url\)/g

/** Replaces `import.meta.url` of each source of ours with the URL of its published path. Also bundles the programs that sources start. */
const publishedUrls = (folder: string, publishedPathOf: (source: string) => string): Plugin => ({
  name: 'published URLs',
  transform(code, id) {
    if (id.includes('/node_modules/')) return null
    const withPrograms = code.replaceAll(ownProgram, (_, path: string) => {
      const program = resolve(dirname(id), path)
      const fileName = `${relative(join(cli, '../..'), program).replace(/\.ts$/, '').replaceAll(/\W+/g, '-')}.js`
      this.emitFile({ type: 'chunk', id: program, fileName })
      // `globalThis.bundleUrl` stands for the URL of the bundle until the other `import.meta.url` are replaced.
      return `new URL('./${fileName}', globalThis.bundleUrl)`
    })
    const sourcePath = JSON.stringify(relative(folder, publishedPathOf(id)).replaceAll(sep, '/'))
    return withPrograms
      .replaceAll(/import\.meta(\.url\b)?/g, (_, url) => {
        if (!url) this.error(`${id} uses another member of import.meta than url, which a bundle does not support`)
        return `new URL(${sourcePath}, import.meta.url).href`
      })
      .replaceAll('globalThis.bundleUrl', 'import.meta.url')
  },
})

/** Replaces `import.meta.url` of each source of ours with the URL of the source, so that its code finds the files next to the source. */
const sourceUrls = (folder: string): Plugin => ({
  name: 'source URLs',
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
 * Replaces imports of Node's built-in modules with `getBuiltinModule` and destructuring, which read only the named exports. An import reads
 * all exports of the module, and reading some exports loads further modules: `node:http` loads all of `fetch`, which takes 20 ms.
 */
const builtinsWithoutImport: Plugin = {
  name: 'builtins without import',
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
 * Returns the path, modification time and size of a bundled source. `bin/run.js` compares time and size with those of the file. The time
 * is 0 for a source that was written during the bundling, so that the bundle is not used.
 */
function stateOf(path: string, folder: string, began: number): readonly [string, number, number] {
  const { mtimeMs, size } = statSync(path)
  return [relative(folder, path), mtimeMs < began ? mtimeMs : 0, size]
}

if (import.meta.main) {
  const sources = await bundle(join(cli, 'dist'))
  console.log(`packages/cli/dist: bundled the command from ${sources.length} sources`)
}
