/**
 * The real programs that tests run against: one row each, built from published Go modules. A program whose module cannot be
 * installed with `go install` (it has replace directives) is built inside a module of our own that requires it.
 */

/** A Go module of our own, made in the cache, that pins where programs come from. */
export interface ToolModule {
  readonly name: string
  readonly version: string
  /** Lowest Go release that builds it. */
  readonly go: string
  /** The upstream module that holds the main packages, with its version. */
  readonly requires: readonly { readonly path: string; readonly version: string }[]
  /** Modules that `requires` names at v0.0.0, because upstream develops them beside it; published at this version. */
  readonly staging?: { readonly of: string; readonly version: string }
  /** Values set by the linker, such as the version that the program reports. */
  readonly variables: { readonly [name: string]: string }
}

export interface Component {
  /** Name of the program, and of the file. */
  readonly name: string
  readonly module: ToolModule
  /** Its main package. */
  readonly package: string
}

const kubernetesVersion = { gitVersion: 'v1.36.2', gitMajor: '1', gitMinor: '36' }

const kubernetes: ToolModule = {
  name: 'kubernetes',
  version: kubernetesVersion.gitVersion,
  go: '1.26',
  requires: [{ path: 'k8s.io/kubernetes', version: kubernetesVersion.gitVersion }],
  staging: { of: 'k8s.io/kubernetes', version: 'v0.36.2' },
  variables: {
    ...versionVariables('k8s.io/component-base/version', kubernetesVersion),
    ...versionVariables('k8s.io/client-go/pkg/version', kubernetesVersion),
  },
}

export const components: readonly Component[] = [
  { name: 'kubectl', module: kubernetes, package: 'k8s.io/kubernetes/cmd/kubectl' },
]

/** What `version` commands report. Nothing here is true of a commit, so none is named. */
function versionVariables(of: string, version: { [name: string]: string }): { [name: string]: string } {
  const values = { ...version, gitTreeState: 'clean', gitCommit: '0'.repeat(40), buildDate: '2026-01-01T00:00:00Z' }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${of}.${name}`, value]))
}
