import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { sourcePackages } from './manifests.ts'

export interface Tarball {
  readonly name: string
  readonly path: string
  /** Size of the tarball in bytes. */
  readonly size: number
  /** Size of the unpacked files in bytes. */
  readonly unpackedSize: number
}

/**
 * Packs each package of `built`, the output folder of `buildPackages`, as a tarball in `folder`. Returns the tarballs, dependencies before
 * their dependents.
 */
export function packPackages(built: string, folder: string): Tarball[] {
  mkdirSync(folder, { recursive: true })
  const args = ['pack', '--json', '--pack-destination', folder]
  return inOrder().map((source) => {
    const text = execFileSync('npm', args, { cwd: join(built, source), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const [packed] = JSON.parse(text) as [{ name: string; filename: string; size: number; unpackedSize: number }]
    const { name, filename, size, unpackedSize } = packed
    return { name, path: join(folder, filename), size, unpackedSize }
  })
}

/** Returns the folders of packages, dependencies first, so that after an interrupted release every published package can be installed. */
function inOrder(): string[] {
  const packages = sourcePackages()
  const ordered: string[] = []
  const add = (folder: string): void => {
    if (ordered.includes(folder)) return
    const { manifest } = packages.find((candidate) => candidate.folder === folder)!
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const dependency = packages.find((candidate) => candidate.manifest.name === name)
      if (dependency) add(dependency.folder)
    }
    ordered.push(folder)
  }
  for (const { folder } of packages) add(folder)
  return ordered
}
