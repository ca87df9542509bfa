/** Checks that the licences of all packages in the lock file are allowed. Needs no network. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Allowed licences of packages that are published with our packages or installed by users. */
const forUsers = new Set(['Apache-2.0', 'MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'])

/** Allowed licences of tools that are used only in the checkout. */
const forDevelopment = new Set([...forUsers, 'BlueOak-1.0.0', 'CC0-1.0', 'MPL-2.0', 'Unlicense', 'Python-2.0', 'PSF-2.0'])

export interface LockedPackage {
  readonly license?: string
  readonly dev?: boolean
  readonly link?: boolean
  readonly optional?: boolean
}

/**
 * Returns a sentence for each package whose licence is missing or not allowed. `packages`: the field of a package-lock.json. Optional
 * packages without a licence are allowed, because the file contains licences of binaries only for the machine that wrote it.
 */
export function licenceProblems(packages: Readonly<Record<string, LockedPackage>>): string[] {
  return Object.entries(packages).flatMap(([path, { license, dev, link, optional }]) => {
    if (!path.includes('node_modules/') || link || (optional && license === undefined)) return []
    const allowed = dev ? forDevelopment : forUsers
    if (license !== undefined && isAllowed(license, allowed)) return []
    const where = dev ? 'for development' : 'in packages that users install'
    return [`${path}: licence ${license ?? 'not given'} is not allowed ${where} (allowed: ${[...allowed].join(', ')})`]
  })
}

/** Evaluates SPDX expressions: one licence of `(MIT OR GPL-3.0)` must be allowed, both of `MIT AND ISC`. */
function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const plain = expression.replace(/^\((.*)\)$/, '$1')
  if (plain.includes(' OR ')) return plain.split(' OR ').some((part) => isAllowed(part.trim(), allowed))
  return plain.split(' AND ').every((part) => allowed.has(part.trim()))
}

if (import.meta.main) {
  const file = fileURLToPath(new URL('../package-lock.json', import.meta.url))
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, LockedPackage> }
  const problems = licenceProblems(packages)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
}
