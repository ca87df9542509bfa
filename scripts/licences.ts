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
 * Returns a sentence for each package whose licence is missing or not allowed. `packages` is the field `packages` of a package-lock.json.
 * Optional packages without a licence are allowed, because npm records the licence of an optional binary only if it was installed on the
 * machine that wrote the file.
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

/**
 * Evaluates SPDX expressions: one licence of `MIT OR GPL-3.0` must be allowed, both of `MIT AND ISC`. AND binds closer than OR. Licences
 * with an exception (`WITH`) are not allowed.
 */
function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  // The loop replaces an innermost pair of parentheses with the result of its content, `allowed` or `forbidden`, until none is left.
  const inner = /\(([^()]*)\)/
  const [yes, no] = ['allowed', 'forbidden']
  const isNameAllowed = (name: string): boolean => name === yes || allowed.has(name)
  const evaluate = (text: string): boolean =>
    text.split(' OR ').some((part) => part.split(' AND ').every((name) => isNameAllowed(name.trim())))
  let text = expression
  while (inner.test(text)) text = text.replace(inner, (_, content: string) => (evaluate(content) ? yes : no))
  return evaluate(text)
}

if (import.meta.main) {
  const file = fileURLToPath(new URL('../package-lock.json', import.meta.url))
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, LockedPackage> }
  const problems = licenceProblems(packages)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
}
