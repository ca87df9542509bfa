/** Builds a library for publication: JavaScript and declarations of the modules that its exports reach, and the files that modules read. */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { publishedManifest, root, type SourcePackage } from './manifests.ts'

/** Versions of packages, by the name of the package. */
type Versions = Readonly<Record<string, string>>

/**
 * Writes the package to `target`. `compiled` is the folder with the output of the compiler. `types` are the versions of the `@types`
 * packages; the package depends on those that its declarations need.
 *
 * @throws Error that names an undeclared import
 */
export function buildLibrary(source: SourcePackage, target: string, compiled: string, types: Versions): void {
  const { folder, manifest } = source
  const from = join(compiled, folder, 'src')
  const dependencies: Record<string, string> = { ...manifest.dependencies }
  const exports: Record<string, unknown> = {}
  const entries: string[] = []
  for (const [path, file] of Object.entries(manifest.exports)) {
    const module = /^\.\/src\/(.+)\.ts$/.exec(file)?.[1]
    if (module === undefined) {
      // An export that is not a module is data: its folder is copied unchanged.
      exports[path] = file
      cpSync(join(root, 'packages', folder, dirname(file)), join(target, dirname(file)), { recursive: true })
      continue
    }
    entries.push(module)
    exports[path] = { types: `./dist/${module}.d.ts`, default: `./dist/${module}.js` }
  }
  const importedPackages = new Set<string>()
  for (const module of reachable(from, entries)) {
    const code = withJavaScriptNames(readFileSync(join(from, `${module}.js`), 'utf8'))
    const declaration = withJavaScriptNames(readFileSync(join(from, `${module}.d.ts`), 'utf8'))
    for (const name of packagesIn(code)) importedPackages.add(name)
    for (const name of packagesIn(declaration)) {
      importedPackages.add(name)
      const typesPackage = `@types/${name}`
      if (types[typesPackage] !== undefined) importedPackages.add(typesPackage)
    }
    const isForNode = /from ["']node:|import\(["']node:|\bNodeJS\.|\bBuffer\b/.test(declaration)
    if (isForNode) importedPackages.add('@types/node')
    write(join(target, 'dist', `${module}.js`), code)
    write(join(target, 'dist', `${module}.d.ts`), isForNode ? `/// <reference types="node" />\n${declaration}` : declaration)
  }
  for (const name of importedPackages) {
    if (dependencies[name] !== undefined || name === manifest.name) continue
    if (types[name] === undefined) throw new Error(`${manifest.name} imports ${name}, which its package.json does not name`)
    dependencies[name] = types[name]
  }
  for (const file of globSync('**/*.json', { cwd: join(root, 'packages', folder, 'src'), exclude: ['**/testdata/**'] }))
    cpSync(join(root, 'packages', folder, 'src', file), join(target, 'dist', file))
  copyTexts(folder, target)
  const folders = new Set(Object.values(manifest.exports).map((file) => file.split('/')[1]!))
  folders.delete('src')
  const data = [...new Set([...dataOf(folder), ...folders])]
  const programs = programsOf(from, entries).map((module) => `./dist/${module}.js`)
  for (const name of data) cpSync(join(root, 'packages', folder, name), join(target, name), { recursive: true })
  const published = publishedManifest(source, {
    exports: { ...exports, './package.json': './package.json' },
    dependencies: sorted(dependencies),
    files: ['dist', ...data],
    sideEffects: programs.length > 0 && programs,
  })
  write(join(target, 'package.json'), `${JSON.stringify(published, undefined, 2)}\n`)
}

/** Copies the README of the package and the licence of the repository. */
export function copyTexts(folder: string, target: string): void {
  cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'))
  cpSync(join(root, 'packages', folder, 'README.md'), join(target, 'README.md'))
}

/** Returns the folders next to src/ that sources read at run time. */
const dataOf = (folder: string): string[] => ['demo'].filter((name) => existsSync(join(root, 'packages', folder, name)))

/**
 * Returns the entries and all modules that they import, in code or in types, or start as programs, directly or indirectly. Names have no
 * file extension.
 */
function reachable(folder: string, entries: readonly string[]): Set<string> {
  const modules = new Set<string>()
  const queue = [...entries]
  for (let module = queue.pop(); module !== undefined; module = queue.pop()) {
    if (modules.has(module)) continue
    modules.add(module)
    for (const ending of ['.js', '.d.ts'])
      for (const path of relativeIn(readFileSync(join(folder, `${module}${ending}`), 'utf8')))
        queue.push(posix.join(posix.dirname(module), path).replace(/\.[jt]s$/, ''))
  }
  return modules
}

/** Returns the programs and workers that modules start. Loading them has side effects. */
const programsOf = (folder: string, entries: readonly string[]): string[] =>
  [...reachable(folder, entries)]
    .flatMap((module) =>
      [...readFileSync(join(folder, `${module}.js`), 'utf8').matchAll(ownProgram)].map(([, path]) =>
        posix.join(posix.dirname(module), path!).replace(/\.ts$/, ''),
      ),
    )
    .sort()

/** Matches `new URL('./worker.ts', import.meta.url)`, a program or worker. */
const ownProgram = /\bnew URL\(['"]([^'"`]+\.ts)['"], import\.meta\.url\)/g
const specifier =
  /^\s*(?:import|export)\s(?:[^'"]*?\sfrom\s)?["']([^"'\n]+)["']|\bimport\(\s*["']([^"'\n]+)["']|\bcreateRequire\(import\.meta\.url\)\(["']([^"']+)["']/gm

const specifiersIn = (text: string): string[] =>
  [...withoutComments(text).matchAll(specifier)].map(([, static_, dynamic, required]) => (static_ ?? dynamic ?? required)!)

const relativeIn = (text: string): string[] => [
  ...specifiersIn(text).filter((path) => /^\.\.?\/.*\.[jt]s$/.test(path)),
  ...[...text.matchAll(ownProgram)].map(([, path]) => path!),
]

const packagesIn = (text: string): string[] =>
  specifiersIn(text)
    .filter((path) => !/^(\.|node:|#)/.test(path) && /^[@a-z]/.test(path))
    .map((path) =>
      path
        .split('/')
        .slice(0, path.startsWith('@') ? 2 : 1)
        .join('/'),
    )

const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')

/** Replaces `.ts` with `.js` in the imports of declarations and in the paths of programs, where the compiler does not replace it. */
const withJavaScriptNames = (text: string): string =>
  text
    .replace(/(\bfrom\s*|\bimport\(\s*)(["'])(\.\.?\/[^"']+)\.ts\2/g, '$1$2$3.js$2')
    .replace(ownProgram, (_, path: string) => `new URL('${path.replace(/\.ts$/, '.js')}', import.meta.url)`)

const sorted = (versions: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(versions).sort(([a], [b]) => (a < b ? -1 : 1)))

export function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
