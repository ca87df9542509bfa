/**
 * clusterctl installs upstream's Cluster API from a folder with upstream's manifests, plans an upgrade, and deletes all providers but not
 * their CRDs, on the embedded API server and on the real API server. Output and objects must be the same. Pods do not run.
 */
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Client,
  CustomResourceDefinition,
  equal,
  type Input,
  isRecord,
  type Json,
  type Kind,
  type KubeObject,
} from '@capstan/kube'
import { stringify } from 'yaml'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { Checks } from './processes/capstan-process.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Suite } from './shared/suite.ts'
import { moduleFolder, output, toolPaths } from './shared/tools.ts'
import { clusterctlOn } from './upstream/clusterctl.ts'
import { components, install, modules } from './upstream/managers.ts'

const version = 'v1.14.0'

/** Providers as clusterctl names them, in the order of `components`. */
const providers = [
  { name: 'cluster-api', type: 'CoreProvider', file: 'core-components.yaml', flag: '--core' },
  { name: 'kubeadm', type: 'BootstrapProvider', file: 'bootstrap-components.yaml', flag: '--bootstrap' },
  { name: 'kubeadm', type: 'ControlPlaneProvider', file: 'control-plane-components.yaml', flag: '--control-plane' },
  { name: 'docker', type: 'InfrastructureProvider', file: 'infrastructure-components.yaml', flag: '--infrastructure' },
] as const

export const clusterctlSuite: Suite = {
  shows: 'clusterctl init, upgrade plan and delete on the embedded API server as on the real one',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'clusterctl'],
  async run() {
    const checks = new Checks()
    const ours = await runOn(await startCapstanApiServer({ progress: console.log }))
    const real = await runOn(await startRealApiServer({ progress: console.log }))
    for (const [step, { text, objects }] of real) {
      const ourStep = ours.get(step)!
      checks.check(`${step} has the same output`, ourStep.text === text)
      if (ourStep.text !== text) console.log(`--- capstan\n${ourStep.text}\n--- kubernetes\n${text}`)
      const names = [[...ourStep.objects.keys()], [...objects.keys()]] as const
      checks.check(`${step} results in the same objects`, equal(...names), namesOnOneServer(...names))
      for (const [name, object] of objects) {
        const ourObject = ourStep.objects.get(name)
        if (ourObject !== undefined && !equal(ourObject, object))
          checks.check(`${step}: ${name} is the same`, false, differences(ourObject, object))
        else checks.check(`${step}: ${name} is the same`, true)
      }
    }
    return checks
  },
}

interface Step {
  readonly text: string
  readonly objects: ReadonlyMap<string, Json>
}

async function runOn(started: RunningApiServer): Promise<Map<string, Step>> {
  await using apiServer = started
  const client = apiServer.client()
  const config = await upstreamRepository(apiServer.folder)
  await install(client, ['certificates', 'issuers'].map(certManagerDefinition))
  const clusterctl = await clusterctlOn(apiServer)
  const steps = new Map<string, Step>()
  for (const [name, ...args] of [
    ['init', ...providers.flatMap(({ name: provider, flag }) => [flag, `${provider}:${version}`])],
    ['upgrade', 'plan'],
    // CRDs are not deleted: a real server stops serving their kinds one by one, while clusterctl still lists all of them.
    ['delete', '--all'],
  ] as const) {
    const startedAt = performance.now()
    const { out, stderr } = await clusterctl.run(name, ...args, '--config', config)
    console.log(`${apiServer.name}: clusterctl ${name} took ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
    steps.set(`clusterctl ${name}`, { text: sorted(out + stderr), objects: await inventory(client) })
  }
  return steps
}

/**
 * Creates a clusterctl repository with upstream's providers, from the released Go modules.
 *
 * @returns the path of clusterctl's configuration
 */
export async function upstreamRepository(folder: string): Promise<string> {
  const [kubectl] = await toolPaths('kubectl')
  const config: object[] = []
  for (const [i, { name, type, file }] of providers.entries()) {
    const { tool, module, config: manifests, provider } = components[i]!
    const providerFolder = join(folder, 'repository', provider, version)
    mkdirSync(providerFolder, { recursive: true })
    const manifestText = await output(kubectl, ['kustomize', join(await moduleFolder(tool, module), manifests, 'default')], {
      cwd: folder,
    })
    writeFileSync(join(providerFolder, file), manifestText)
    copyFileSync(join(await moduleFolder('clusterctl', modules.core), 'metadata.yaml'), join(providerFolder, 'metadata.yaml'))
    chmodSync(join(providerFolder, 'metadata.yaml'), 0o600)
    config.push({ name, type, url: `file://${join(providerFolder, file)}` })
  }
  const path = join(folder, 'clusterctl.yaml')
  writeFileSync(path, stringify({ providers: config }))
  return path
}

/**
 * Returns the CRD of cert-manager for `certificates` or `issuers`. While both are served, clusterctl assumes that cert-manager is
 * installed.
 */
export function certManagerDefinition(plural: string): Input<CustomResourceDefinition> & { metadata: { name: string } } {
  const kind = plural === 'issuers' ? 'Issuer' : 'Certificate'
  const schema = { openAPIV3Schema: { type: 'object' as const, 'x-kubernetes-preserve-unknown-fields': true } }
  return {
    metadata: { name: `${plural}.cert-manager.io` },
    spec: {
      group: 'cert-manager.io',
      names: { plural, kind },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}

const kind = (group: string, name: string, plural: string, scope: Kind['scope'] = 'Namespaced', servedVersion = 'v1'): Kind => ({
  group,
  version: servedVersion,
  kind: name,
  plural,
  scope,
})
const rbac = 'rbac.authorization.k8s.io'
const admission = 'admissionregistration.k8s.io'

/** Kinds of all objects in the manifests, and the kind in which clusterctl records installed providers. */
const kinds: readonly Kind[] = [
  kind('', 'Namespace', 'namespaces', 'Cluster'),
  kind('', 'Service', 'services'),
  kind('', 'ServiceAccount', 'serviceaccounts'),
  kind('apps', 'Deployment', 'deployments'),
  kind(rbac, 'Role', 'roles'),
  kind(rbac, 'RoleBinding', 'rolebindings'),
  kind(rbac, 'ClusterRole', 'clusterroles', 'Cluster'),
  kind(rbac, 'ClusterRoleBinding', 'clusterrolebindings', 'Cluster'),
  kind(admission, 'MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', 'Cluster'),
  kind(admission, 'ValidatingWebhookConfiguration', 'validatingwebhookconfigurations', 'Cluster'),
  CustomResourceDefinition,
  kind('cert-manager.io', 'Certificate', 'certificates'),
  kind('cert-manager.io', 'Issuer', 'issuers'),
  kind('clusterctl.cluster.x-k8s.io', 'Provider', 'providers', 'Namespaced', 'v1alpha3'),
]

/**
 * Returns the installed objects by kind and name, without status and fields that differ between any two servers, such as uid.
 */
async function inventory(client: Client): Promise<Map<string, Json>> {
  const installed = new Map<string, Json>()
  const servedGroups = (await client.list(CustomResourceDefinition)).items.map(({ spec }) => spec.group)
  for (const listedKind of kinds) {
    if (listedKind.group.includes('cert-manager') || listedKind.group.includes('cluster.x-k8s'))
      if (!servedGroups.includes(listedKind.group)) continue
    for (const object of (await client.list(listedKind)).items) {
      const { name, namespace = '' } = object.metadata
      if (/^capi-|^capd-/.test(namespace || name) || object.metadata.labels?.['clusterctl.cluster.x-k8s.io'] !== undefined)
        installed.set(`${listedKind.kind} ${namespace}/${name}`, withoutVolatileFields(object))
    }
  }
  return new Map([...installed].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function withoutVolatileFields(object: KubeObject): Json {
  const { metadata, status: _, ...otherFields } = object as KubeObject & { status?: Json; spec?: { [field: string]: Json } }
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _created, managedFields, ...comparedMetadata } = metadata
  const { clusterIP: _ip, clusterIPs: _ips, ...spec } = otherFields.spec ?? {}
  const managers = (managedFields ?? []).map(({ manager, operation, subresource, fieldsV1 }) => ({
    manager,
    operation,
    subresource,
    fieldsV1,
  }))
  return JSON.parse(
    JSON.stringify({ ...otherFields, ...(otherFields.spec ? { spec } : {}), metadata: { ...comparedMetadata, managers } }),
  ) as Json
}

/** Sorts the lines of an output, so that their order is not compared. */
const sorted = (text: string): string => text.split('\n').sort().join('\n')

const namesOnOneServer = (ours: readonly string[], real: readonly string[]) => ({
  onlyOnCapstan: ours.filter((name) => !real.includes(name)),
  onlyOnKubernetes: real.filter((name) => !ours.includes(name)),
})

/** Returns the paths at which two objects differ, with both values. */
function differences(ours: Json | undefined, real: Json | undefined, path = ''): string[] {
  if (equal(ours, real)) return []
  const isList = Array.isArray(ours) && Array.isArray(real)
  if (!isList && !(isRecord(ours) && isRecord(real)))
    return [`${path}: ${JSON.stringify(ours)?.slice(0, 200)}, not ${JSON.stringify(real)?.slice(0, 200)}`]
  const keys = new Set([...Object.keys(ours), ...Object.keys(real)])
  return [...keys].flatMap((key) =>
    differences((ours as { [key: string]: Json })[key], (real as { [key: string]: Json })[key], `${path}/${key}`),
  )
}
