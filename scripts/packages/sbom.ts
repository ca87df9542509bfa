import { execFileSync } from 'node:child_process'
import { root } from './manifests.ts'

/** Returns the SBOM (CycloneDX) that `npm sbom` creates for the packages of the checkout, without development dependencies. */
export function billOfMaterials(): string {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--omit', 'dev', '--workspaces']
  return execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 })
}
