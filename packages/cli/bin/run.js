// Loads a program of this package. This file is plain JavaScript, because it decides whether the TypeScript sources are loaded at all.
import module from 'node:module'
import { fileURLToPath } from 'node:url'

// An import statement would read all exports of node:fs, and thereby load the streams of node:fs.
const { readFileSync, statSync } = process.getBuiltinModule('node:fs')

/** URL of the folder that contains this package and the packages beside it. */
const sources = new URL('../../', import.meta.url).href
const bundles = new URL('../dist/', import.meta.url)

/**
 * Loads a program: the published package loads its bundle, `program`. A checkout loads the bundle, which starts faster, only if no source has
 * changed since `npm run prepare` made the bundle; otherwise it loads the sources, from the entry `source`.
 */
export function run(program, source) {
  // From the second start on, the cache saves compiling and type stripping. Child processes use it through the environment variable.
  const { directory } = module.enableCompileCache?.() ?? {}
  if (directory) process.env.NODE_COMPILE_CACHE ??= directory
  if (isPublished() || isBundleFresh()) return import(new URL(program, bundles).href)
  loadSourcesFast()
  return import(new URL(source, import.meta.url).href)
}

/**
 * Like `run`, but in a checkout always loads the sources: a project that links the checkout then shares its modules with this process
 * instead of loading them a second time.
 */
export function runOwnModules(program, source) {
  module.enableCompileCache?.()
  return isPublished() ? import(new URL(program, bundles).href) : import(new URL(source, import.meta.url).href)
}

/** Reports whether this is the published package, which has no sources. */
function isPublished() {
  return statSync(fileURLToPath(new URL('../src/main.ts', import.meta.url)), { throwIfNoEntry: false }) === undefined
}

function isBundleFresh() {
  const folder = fileURLToPath(bundles)
  try {
    const bundled = JSON.parse(readFileSync(`${folder}sources.json`, 'utf8'))
    return bundled.every(([path, changed, size]) => {
      const found = statSync(folder + path)
      return found.mtimeMs === changed && found.size === size
    })
  } catch {
    // There is no bundle, or one of its sources was deleted.
    return false
  }
}

/**
 * Resolves the relative imports of our sources without a search, because they name exact files, and resolves each package of ours only once.
 * This saves the loader several file system calls for each of a thousand imports.
 */
function loadSourcesFast() {
  const packages = new Map()
  module.registerHooks({
    resolve(name, context, next) {
      if (!context.parentURL?.startsWith(sources)) return next(name, context)
      if (name.startsWith('.') && name.endsWith('.ts'))
        return { url: beside(context.parentURL, name), format: 'module-typescript', shortCircuit: true }
      if (!name.startsWith('@capstan/')) return next(name, context)
      let found = packages.get(name)
      if (!found) packages.set(name, (found = { ...next(name, context), shortCircuit: true }))
      return found
    },
    load(url, context, next) {
      if (context.format !== 'module-typescript' || !url.startsWith(sources)) return next(url, context)
      return { source: readFileSync(fileURLToPath(url)), format: context.format, shortCircuit: true }
    },
  })
}

/** Resolves a relative path as `new URL` does, in a third of the time. */
function beside(parent, name) {
  let end = parent.lastIndexOf('/')
  let from = name.startsWith('./') ? 2 : 0
  for (; name.startsWith('../', from); from += 3) end = parent.lastIndexOf('/', end - 1)
  return parent.slice(0, end + 1) + name.slice(from)
}
