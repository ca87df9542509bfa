/**
 * `npm run release` checks that all packages have the version of package.json and that CHANGELOG.md has text for this version, builds and
 * packs every package, writes build/release (tarballs, SHA256SUMS, sbom.cdx.json, NOTES.md), and publishes the tarballs to npm with
 * provenance. It requires a clean checkout, a tag of the version at HEAD, and a repository in package.json. With `--dry-run` it publishes
 * nothing and requires none of these three; text under "Unreleased" in CHANGELOG.md is then enough.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildFolder, buildPackages } from './build.ts'
import { releaseNotes } from './packages/changelog.ts'
import { root, rootManifest, sourcePackages } from './packages/manifests.ts'
import { packPackages } from './packages/pack.ts'
import { billOfMaterials } from './packages/sbom.ts'

const { values: options } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } })
const isDryRun = options['dry-run']
const folder = join(root, 'build', 'release')
const { version, repository } = rootManifest()

const problems = [
  ...sourcePackages().flatMap(({ folder: name, manifest }) =>
    manifest.version === version
      ? []
      : [`packages/${name}/package.json has version ${manifest.version}, but package.json has ${version}: run npm run gen`],
  ),
  ...(isDryRun ? [] : problemsOfPublishing()),
]
const notes = releaseNotes(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version)
if (notes === undefined || (!isDryRun && !notes.isFinal))
  problems.push(`CHANGELOG.md has no text under "## ${version}"${isDryRun ? ' or "## Unreleased"' : ''}`)
if (problems.length > 0) {
  for (const problem of problems) console.error(problem)
  process.exit(1)
}

await buildPackages(buildFolder)
rmSync(folder, { recursive: true, force: true })
const tarballs = packPackages(buildFolder, folder)
writeFileSync(join(folder, 'NOTES.md'), notes!.text)
const sbom = billOfMaterials()
writeFileSync(join(folder, 'sbom.cdx.json'), sbom)
const files = [...tarballs.map(({ path }) => path), join(folder, 'sbom.cdx.json')]
const sums = files.map((path) => `${createHash('sha256').update(readFileSync(path)).digest('hex')}  ${basename(path)}\n`)
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))

const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)} kB`.padStart(9)
for (const { name, size, unpackedSize } of tarballs)
  console.log(`${name.padEnd(26)} ${version} ${kilobytes(size)} packed ${kilobytes(unpackedSize)} unpacked`)
const { components } = JSON.parse(sbom) as { components: readonly unknown[] }
console.log(`sbom.cdx.json: ${components.length} components; SHA256SUMS; NOTES.md from "${notes!.heading}"`)
console.log(
  repository === undefined
    ? 'Every published package.json requests provenance. npm grants it only if the package.json of the checkout names the repository, and only in a CI job; in GitHub Actions, the job needs id-token: write.'
    : 'Every published package.json requests provenance. npm grants it only in a CI job; in GitHub Actions, the job needs id-token: write.',
)
if (isDryRun) console.log(`Dry run: nothing was published. The files are in ${folder}`)
else for (const { path } of tarballs) execFileSync('npm', ['publish', '--provenance', path], { cwd: root, stdio: 'inherit' })

function problemsOfPublishing(): string[] {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  return [
    ...(git('status', '--porcelain') === '' ? [] : ['The checkout has changes that are not committed']),
    ...(git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`) ? [] : [`HEAD has no tag v${version}`]),
    ...(repository === undefined ? ['package.json names no repository, which provenance needs'] : []),
  ]
}
