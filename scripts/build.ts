/**
 * `npm run build [-- FOLDER]` writes every package, in the form in which it is published, to build/packages/<name>, or to FOLDER/<name>.
 * Libraries are compiled to JavaScript and declarations; the command is bundled. <name> is the name of the folder in packages/. The checkout
 * does not use the result: there, packages are imported from their sources (ADR 40).
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildCommand } from './packages/command.ts'
import { buildLibrary } from './packages/library.ts'
import { root, sourcePackages } from './packages/manifests.ts'

export const buildFolder = join(root, 'build', 'packages')

/** Writes every package to `<folder>/<name>`. Deletes the earlier content of `<folder>/<name>`, but no other content of `folder`. */
export async function buildPackages(folder: string): Promise<void> {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  const types = Object.fromEntries(Object.entries(devDependencies).filter(([name]) => name.startsWith('@types/')))
  const compiled = mkdtempSync(join(tmpdir(), 'capstan-compiled-'))
  try {
    const compiler = join(root, 'node_modules/.bin/tsc')
    execFileSync(compiler, ['-p', 'tsconfig.build.json', '--outDir', compiled], { cwd: root, stdio: 'inherit' })
    for (const source of sourcePackages()) {
      const target = join(folder, source.folder)
      rmSync(target, { recursive: true, force: true })
      if (source.manifest.bin) await buildCommand(source, target)
      else buildLibrary(source, target, compiled, types)
    }
  } finally {
    rmSync(compiled, { recursive: true })
  }
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? buildFolder)
  await buildPackages(folder)
  console.log(`${sourcePackages().length} packages built: ${folder}`)
}
