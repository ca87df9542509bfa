/** Creates the build context of the command's image. image/Dockerfile builds the image from this context. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buildCommand } from './command.ts'
import { root, sourcePackages } from './manifests.ts'
import { billOfMaterials } from './sbom.ts'

/** Names of architectures in image platforms. */
export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** Names of the same architectures in npm's packages of Node. */
const nodeNames: Readonly<Record<Architecture, string>> = { amd64: 'x64', arm64: 'arm64' }

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage | undefined>>
}

interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
}

/** Writes the context to `folder`, which is emptied first. @throws Error, for example if Node for an architecture is not available */
export async function imageContext(folder: string, platforms: readonly Architecture[]): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const lock = readLock()
  const command = join(folder, 'app', 'node_modules', '@capstan', 'cli')
  await buildCommand(sourcePackages().find(({ manifest }) => manifest.bin)!, command)
  const { dependencies } = JSON.parse(readFileSync(join(command, 'package.json'), 'utf8')) as LockedPackage
  for (const path of closureOf(lock, Object.keys(dependencies ?? {})))
    cpSync(join(root, path), join(folder, 'app', path), { recursive: true, dereference: true })
  mkdirSync(join(folder, 'node'))
  for (const architecture of platforms) copyNode(lock, architecture, join(folder, 'node', architecture))
  writeFileSync(join(folder, 'sbom.cdx.json'), billOfMaterials())
}

const readLock = (): Lock => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock

/**
 * Returns the paths of the packages and their dependencies, relative to the checkout, as installed by `npm ci`. Omits paths below another
 * returned path, because they are copied with it.
 */
function closureOf(lock: Lock, names: readonly string[]): string[] {
  const paths = new Set<string>()
  const add = (name: string, from: string): void => {
    const path = resolvePackage(lock, name, from)
    if (paths.has(path)) return
    paths.add(path)
    for (const next of Object.keys(lock.packages[path]!.dependencies ?? {})) add(next, path)
  }
  for (const name of names) add(name, '')
  return [...paths].filter((path) => ![...paths].some((other) => path.startsWith(`${other}/`))).sort()
}

/** Returns the path of a package as Node resolves it: in the nearest node_modules folder, in `from` or above, that contains the package. */
function resolvePackage(lock: Lock, name: string, from: string): string {
  for (let above = from; ; above = above.includes('/node_modules/') ? above.slice(0, above.lastIndexOf('/node_modules/')) : '') {
    const path = `${above === '' ? '' : `${above}/`}node_modules/${name}`
    if (lock.packages[path]) return path
    if (above === '') throw new Error(`package-lock.json has no ${name}: run npm install`)
  }
}

/**
 * Downloads Node for the architectures of images to npm's cache, so that `imageContext` needs no network. Skips Node that is installed in
 * node_modules: on Linux, that for the architecture of this machine.
 */
export function downloadNode(platforms: readonly Architecture[]): void {
  const lock = readLock()
  for (const architecture of platforms) {
    const { name, version, installed } = nodeOf(lock, architecture)
    if (!existsSync(installed)) execFileSync('npm', ['cache', 'add', `${name}@${version}`])
  }
}

/** Returns the package that contains Node for the architecture, and the path of the program `node` in node_modules. */
function nodeOf(lock: Lock, architecture: Architecture) {
  const name = `node-linux-${nodeNames[architecture]}`
  const path = `node_modules/${name}`
  return { name, ...lock.packages[path]!, installed: join(root, path, 'bin/node') }
}

/** Copies Node in the version of package-lock.json to `target`: from node_modules if installed there, otherwise from npm. */
function copyNode(lock: Lock, architecture: Architecture, target: string): void {
  const { name, version, integrity, installed } = nodeOf(lock, architecture)
  if (existsSync(installed)) return cpSync(installed, target)
  const scratch = mkdtempSync(join(tmpdir(), 'capstan-node-'))
  try {
    const args = ['pack', '--loglevel=error', '--prefer-offline', `${name}@${version}`]
    const packed = execFileSync('npm', args, { cwd: scratch, encoding: 'utf8' }).trim()
    const bytes = readFileSync(join(scratch, packed))
    const actual = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
    if (actual !== integrity) throw new Error(`${name} ${version} has integrity ${actual}; package-lock.json has ${integrity}`)
    execFileSync('tar', ['-xzf', packed, 'package/bin/node'], { cwd: scratch })
    mkdirSync(dirname(target), { recursive: true })
    cpSync(join(scratch, 'package/bin/node'), target)
  } finally {
    rmSync(scratch, { recursive: true })
  }
}
