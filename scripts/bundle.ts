/**
 * The command in few files, which load in half the time of its 400 sources: `packages/cli/dist`, made by `npm install`
 * (`prepare`). `packages/cli/bin/run.js` runs it while the sources are those that it was made of.
 */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { isAbsolute, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const cli = fileURLToPath(new URL('../packages/cli/', import.meta.url))

/** What `bin/` imports, by the name of its file in the bundle. */
const entries = { capstan: 'src/main.ts', envtest: 'src/envtest/main.ts' }

/** Our own, and what every start needs. Other packages stay where they are: most starts need none. */
const isInside = (id: string): boolean => id.startsWith('.') || isAbsolute(id) || id.startsWith('@capstan/') || id === 'commander'

/** Writes the bundle to `folder` and returns its sources. @throws when one says of itself what a bundle cannot */
export async function bundle(folder: string): Promise<readonly string[]> {
  const began = Date.now()
  const input = Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(cli, source)]))
  const made = await rolldown({
    input,
    platform: 'node',
    external: (id) => !isInside(id),
    plugins: [placesOfSources(folder), builtinsInPart],
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
    const sources = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds.filter(isAbsolute) : []))
    // Last: a bundle without it is not used.
    writeFileSync(join(folder, 'sources.json'), JSON.stringify(sources.map((path) => stateOf(path, folder, began))))
    return sources
  } finally {
    await made.close()
  }
}

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

/** By what `bin/run.js` sees that a source is the one that was bundled. One that was written meanwhile may not be: it is none. */
function stateOf(path: string, folder: string, began: number): readonly [string, number, number] {
  const { mtimeMs, size } = statSync(path)
  return [relative(folder, path), mtimeMs < began ? mtimeMs : 0, size]
}

if (import.meta.main) {
  const sources = await bundle(join(cli, 'dist'))
  console.log(`packages/cli/dist: the command, of ${sources.length} sources`)
}
