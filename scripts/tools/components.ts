/**
 * The Go programs, mostly upstream's, that interop suites, benchmarks and scripts run. `go install` rejects modules with replace directives,
 * so each program is built in a generated Go module that requires published modules.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'

/** A generated Go module in the cache, which pins the versions of its programs. */
export interface ToolModule {
  readonly name: string
  /**
   * Path of the module; default `capstan.dev/tools/<name>`. A module that imports internal packages of another module must have a path
   * below the path of the other module, because Go requires this.
   */
  readonly path?: string
  /** Built programs are cached by `name` and `version`. */
  readonly version: string
  /** Oldest Go release that can build the programs. */
  readonly go: string
  /** Modules that contain the main packages, or that the programs need, with their versions. */
  readonly requires: readonly { readonly path: string; readonly version: string }[]
  /**
   * For a module `of` whose go.mod requires modules of the same repository with the version v0.0.0: the version with which upstream
   * publishes these modules. It replaces v0.0.0.
   */
  readonly staging?: { readonly of: string; readonly version: string }
  /**
   * Published versions for modules that upstream's go.mod replaces with folders of its repository. Go ignores replace directives of
   * dependencies, so the generated module has its own.
   */
  readonly replaces?: { readonly [path: string]: string }
  /** Values set by the linker, such as the version that the program reports. */
  readonly variables: { readonly [name: string]: string }
  /** Go files of the module by name, for programs whose main package is not upstream's. */
  readonly sources?: { readonly [file: string]: string }
  /** Arguments of a `go` command that generates additional files, such as `run` and a generator. */
  readonly generate?: readonly string[]
}

export interface Component {
  /** Name of the program, and of its file in the cache. */
  readonly name: string
  readonly module: ToolModule
  /** The main package; `.` is the main package of the generated module. */
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

const etcd: ToolModule = {
  name: 'etcd',
  version: 'v3.6.8',
  go: '1.24',
  requires: [{ path: 'go.etcd.io/etcd/server/v3', version: 'v3.6.8' }],
  variables: {},
  sources: {
    'main.go': `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`,
  },
}

const clusterApiVersion = { gitVersion: 'v1.14.0', gitMajor: '1', gitMinor: '14' }

const clusterApi: ToolModule = {
  name: 'cluster-api',
  version: clusterApiVersion.gitVersion,
  go: '1.26',
  requires: [
    { path: 'sigs.k8s.io/cluster-api', version: clusterApiVersion.gitVersion },
    { path: 'sigs.k8s.io/cluster-api/test', version: clusterApiVersion.gitVersion },
  ],
  replaces: { 'sigs.k8s.io/cluster-api/api': clusterApiVersion.gitVersion },
  variables: versionVariables('sigs.k8s.io/cluster-api/version', clusterApiVersion),
}

const hooksPeerSources = sourcesOf('hooks-peer')

/** Our program that uses upstream's published hook types, to compare with Capstan's. */
const hooksPeer: ToolModule = {
  name: 'hooks-peer',
  version: `${clusterApiVersion.gitVersion}-${digestOf(hooksPeerSources)}`,
  go: '1.26',
  requires: [
    { path: 'sigs.k8s.io/cluster-api/api', version: clusterApiVersion.gitVersion },
    { path: 'k8s.io/kube-openapi', version: 'v0.0.0-20260317180543-43fb72c5454a' },
    // The version that upstream's core uses.
    { path: 'github.com/evanphx/json-patch/v5', version: 'v5.9.11' },
  ],
  variables: {},
  sources: hooksPeerSources,
  // The generator with which upstream generates the definitions of its OpenAPI document.
  generate: [
    'run',
    'k8s.io/kube-openapi/cmd/openapi-gen',
    '--output-dir=definitions',
    '--output-pkg=capstan.dev/tools/hooks-peer/definitions',
    '--output-file=definitions.go',
    '--report-filename=definitions.txt',
    'sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1',
    'sigs.k8s.io/cluster-api/api/core/v1beta2',
    'k8s.io/api/core/v1',
    'k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1',
    'k8s.io/apimachinery/pkg/api/resource',
    'k8s.io/apimachinery/pkg/apis/meta/v1',
    'k8s.io/apimachinery/pkg/runtime',
    'k8s.io/apimachinery/pkg/util/intstr',
  ],
}

const hooksClientSources = sourcesOf('hooks-client')

/** Our program that uses upstream's runtime client. The client is an internal package, so the path of our module is below upstream's. */
const hooksClient: ToolModule = {
  ...clusterApi,
  name: 'hooks-client',
  version: `${clusterApiVersion.gitVersion}-${digestOf(hooksClientSources)}`,
  path: 'sigs.k8s.io/cluster-api/capstan-hooks-client',
  requires: [{ path: 'sigs.k8s.io/cluster-api', version: clusterApiVersion.gitVersion }],
  sources: hooksClientSources,
}

const conversionPeerSources = sourcesOf('conversion-peer')

/** Our program that uses upstream's published conversions between API versions. */
const conversionPeer: ToolModule = {
  ...clusterApi,
  name: 'conversion-peer',
  version: `${clusterApiVersion.gitVersion}-${digestOf(conversionPeerSources)}`,
  requires: [{ path: 'sigs.k8s.io/cluster-api', version: clusterApiVersion.gitVersion }],
  sources: conversionPeerSources,
}

/** All programs. `cabpk`, `kcp` and `capd` are the usual abbreviations for three of upstream's providers. */
export const components: readonly Component[] = [
  { name: 'kubectl', module: kubernetes, package: 'k8s.io/kubernetes/cmd/kubectl' },
  { name: 'etcd', module: etcd, package: '.' },
  { name: 'kube-apiserver', module: kubernetes, package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  { name: 'kube-controller-manager', module: kubernetes, package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  { name: 'clusterctl', module: clusterApi, package: 'sigs.k8s.io/cluster-api/cmd/clusterctl' },
  { name: 'capi-core', module: clusterApi, package: 'sigs.k8s.io/cluster-api/core' },
  { name: 'cabpk', module: clusterApi, package: 'sigs.k8s.io/cluster-api/bootstrap/kubeadm' },
  { name: 'kcp', module: clusterApi, package: 'sigs.k8s.io/cluster-api/controlplane/kubeadm' },
  { name: 'capd', module: clusterApi, package: 'sigs.k8s.io/cluster-api/test/infrastructure/docker' },
  { name: 'test-extension', module: clusterApi, package: 'sigs.k8s.io/cluster-api/test/extension' },
  { name: 'hooks-peer', module: hooksPeer, package: '.' },
  { name: 'hooks-client', module: hooksClient, package: '.' },
  { name: 'conversion-peer', module: conversionPeer, package: '.' },
]

/** Returns the Go files of one of our own programs, by name, from its folder beside this file. */
function sourcesOf(program: string): { [file: string]: string } {
  const folder = new URL(`${program}/`, import.meta.url)
  const files = readdirSync(folder).filter((file) => file.endsWith('.go'))
  return Object.fromEntries(files.sort().map((file) => [file, readFileSync(new URL(file, folder), 'utf8')]))
}

/** Returns a digest of our sources. It is a part of the version, so that changed sources cause a new build. */
function digestOf(sources: { readonly [file: string]: string }): string {
  return createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 12)
}

/** Returns the Go variables that `version` commands print. The commit is all zeros, because the programs are not built from a commit. */
function versionVariables(goPackage: string, version: { [name: string]: string }): { [name: string]: string } {
  const values = { ...version, gitTreeState: 'clean', gitCommit: '0'.repeat(40), buildDate: '2026-01-01T00:00:00Z' }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${goPackage}.${name}`, value]))
}
