/**
 * clusterctl installs upstream's Cluster API from a folder with its real manifests, plans an upgrade and deletes everything: on the
 * embedded API server and on the real one, with the same output and the same objects. Pods do not run.
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
import { startCapstanApiServer } from './capstan-api-server.ts'
import { Checks } from './capstan-process.ts'
import type { RunningApiServer } from './api-server.ts'
import { startRealApiServer } from './real-api-server.ts'
import type { Suite } from './suite.ts'
import { moduleFolder, output, toolPaths } from './tools.ts'
import { clusterctlOn } from './upstream/clusterctl.ts'
import { components, install, modules } from './upstream/managers.ts'

const version = 'v1.14.0'

/** The providers' names in clusterctl, in the order of `components`. */
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
      const found = ours.get(step)!
      checks.check(`${step} has the same output`, found.text === text)
      if (found.text !== text) console.log(`--- capstan\n${found.text}\n--- kubernetes\n${text}`)
      const names = [[...found.objects.keys()], [...objects.keys()]] as const
      checks.check(`${step} results in the same objects`, equal(...names), difference(...names))
      for (const [name, object] of objects) {
        const other = found.objects.get(name)
        if (other !== undefined && !equal(other, object)) checks.check(`${step}: ${name}`, false, differences(other, object))
        else checks.check(`${step}: ${name}`, true)
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
    // Not the CustomResourceDefinitions: a real server stops serving their kinds one by one, while clusterctl still lists each.
    ['delete', '--all'],
  ] as const) {
    const begun = performance.now()
    const { out, complaints } = await clusterctl.run(name, ...args, '--config', config)
    console.log(`${apiServer.name}: clusterctl ${name} took ${((performance.now() - begun) / 1000).toFixed(1)} s`)
    steps.set(`clusterctl ${name}`, { text: sorted(out + complaints), objects: await inventory(client) })
  }
  return steps
}

/** Creates a repository folder of upstream's providers for `clusterctl init` from the released modules. @returns the path of its configuration */
export async function upstreamRepository(folder: string): Promise<string> {
  const [kubectl] = await toolPaths('kubectl')
  const config: object[] = []
  for (const [i, { name, type, file }] of providers.entries()) {
    const { tool, module, config: manifests, provider } = components[i]!
    const place = join(folder, 'repository', provider, version)
    mkdirSync(place, { recursive: true })
    const built = await output(kubectl, ['kustomize', join(await moduleFolder(tool, module), manifests, 'default')], {
      cwd: folder,
    })
    writeFileSync(join(place, file), built)
    copyFileSync(join(await moduleFolder('clusterctl', modules.core), 'metadata.yaml'), join(place, 'metadata.yaml'))
    chmodSync(join(place, 'metadata.yaml'), 0o600)
    config.push({ name, type, url: `file://${join(place, file)}` })
  }
  const path = join(folder, 'clusterctl.yaml')
  writeFileSync(path, stringify({ providers: config }))
  return path
}

/** The objects by which clusterctl recognizes an installed cert-manager. */
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

const kind = (group: string, name: string, plural: string, scope: Kind['scope'] = 'Namespaced', of = 'v1'): Kind => ({
  group,
  version: of,
  kind: name,
  plural,
  scope,
})
const rbac = 'rbac.authorization.k8s.io'
const admission = 'admissionregistration.k8s.io'

/** Returns all objects of the manifests. */
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
  kind('clusterctl.cluster.x-k8s.io', 'Provider', 'providers', 'Cluster', 'v1alpha3'),
]

/** Returns the installed objects by kind and name, without fields that differ between any two servers. */
async function inventory(client: Client): Promise<Map<string, Json>> {
  const found = new Map<string, Json>()
  const definitions = (await client.list(CustomResourceDefinition)).items.map(({ spec }) => spec.group)
  for (const one of kinds) {
    if (one.group.includes('cert-manager') || one.group.includes('cluster.x-k8s')) if (!definitions.includes(one.group)) continue
    for (const object of (await client.list(one)).items) {
      const { name, namespace = '' } = object.metadata
      if (/^capi-|^capd-/.test(namespace || name) || object.metadata.labels?.['clusterctl.cluster.x-k8s.io'] !== undefined)
        found.set(`${one.kind} ${namespace}/${name}`, plain(object))
    }
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function plain(object: KubeObject): Json {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: Json; spec?: { [field: string]: Json } }
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _created, managedFields, ...kept } = metadata
  const { clusterIP: _ip, clusterIPs: _ips, ...spec } = rest.spec ?? {}
  const managers = (managedFields ?? []).map(({ manager, operation, subresource, fieldsV1 }) => ({
    manager,
    operation,
    subresource,
    fieldsV1,
  }))
  return JSON.parse(JSON.stringify({ ...rest, ...(rest.spec ? { spec } : {}), metadata: { ...kept, managers } })) as Json
}

/** Sorts lines, because clusterctl handles providers concurrently. */
const sorted = (text: string): string => text.split('\n').sort().join('\n')

const difference = (ours: readonly string[], real: readonly string[]) => ({
  onlyOnCapstan: ours.filter((one) => !real.includes(one)),
  onlyOnKubernetes: real.filter((one) => !ours.includes(one)),
})

/** Paths at which two objects differ, with both values. */
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
