/** Runs upstream's managers as processes, without Pods, kustomize and cert-manager. */
import { writeFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Client,
  ClusterRoleBinding,
  CustomResourceDefinition,
  isTrue,
  MutatingWebhookConfiguration,
  systemClock,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import { issueCertificate } from '@capstan/kube/node'
import type { PlaneUser, ServedPlane } from '../plane.ts'
import { answers, freePorts, type Program, Programs, ready } from '../programs.ts'
import { toolPaths } from '../tools.ts'
import { until } from '../until.ts'
import { startEngineStub } from './engine-stub.ts'
import { type Manifests, readManifests } from './manifests.ts'

/** Upstream: Cluster API v1.14, the kustomizations of each component. */
export interface Component {
  /** Of scripts/tools. */
  readonly tool: string
  /** Go module and folder that hold its manifests. */
  readonly module: string
  readonly config: string
  /** What kustomize puts before the names of its webhook configurations, which are the same for all components. */
  readonly prefix: string
  readonly provider: string
  /** Whether its kinds carry the contract versions that they implement. */
  readonly isProvider: boolean
}

export const modules = { core: 'sigs.k8s.io/cluster-api', test: 'sigs.k8s.io/cluster-api/test' } as const

export const components: readonly Component[] = [
  {
    tool: 'capi-core',
    module: modules.core,
    config: 'core/config',
    prefix: 'capi-',
    provider: 'cluster-api',
    isProvider: false,
  },
  {
    tool: 'cabpk',
    module: modules.core,
    config: 'bootstrap/kubeadm/config',
    prefix: 'capi-kubeadm-bootstrap-',
    provider: 'bootstrap-kubeadm',
    isProvider: true,
  },
  {
    tool: 'kcp',
    module: modules.core,
    config: 'controlplane/kubeadm/config',
    prefix: 'capi-kubeadm-control-plane-',
    provider: 'control-plane-kubeadm',
    isProvider: true,
  },
  {
    tool: 'capd',
    module: modules.test,
    config: 'infrastructure/docker/config',
    prefix: 'capd-',
    provider: 'infrastructure-docker',
    isProvider: true,
  },
]

/**
 * Who the managers are: not of `system:masters`, so that a real server protects itself from them by priority and fairness, and both
 * decide by RBAC.
 */
export const managersUser: PlaneUser = { name: 'managers', groups: ['interop:managers'] }

const allGates = 'ClusterTopology=true,RuntimeSDK=true,MachinePool=true'
const fieldManager = 'interop'

export interface Managers extends AsyncDisposable {
  readonly programs: readonly Program[]
  readonly manifests: Manifests
  /** Kills those of these components and starts them again at the same ports; resolves when they serve. */
  restart(tools: readonly string[]): Promise<void>
  /** Before they end for good: the server would reject writes while no manager answers. */
  removeWebhooks(): Promise<void>
}

export interface ManagersOptions {
  /** Which of them; all when absent. */
  readonly components?: readonly Component[]
  readonly gates?: string
  /** More flags for each. */
  readonly flags?: readonly string[]
}

/** Lets the managers do everything. */
export async function allowManagers(client: Client): Promise<void> {
  const binding = {
    metadata: { name: 'interop-managers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: managersUser.groups!.map((name) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name })),
  }
  await client.apply(ClusterRoleBinding, binding, { fieldManager })
}

/** Installs everything and resolves when all of it serves. */
export async function startManagers(
  plane: ServedPlane,
  progress: (line: string) => void,
  { components: chosen = components, gates = allGates, flags = [] }: ManagersOptions = {},
): Promise<Managers> {
  const client = plane.client()
  await allowManagers(client)
  const ports = await freePorts(chosen.length * 3)
  const placed = chosen.map((component, i) => ({
    ...component,
    ports: { webhook: ports[i * 3]!, health: ports[i * 3 + 1]!, diagnostics: ports[i * 3 + 2]! },
  }))
  const urlOf = new Map(placed.map(({ tool, ports: { webhook } }) => [tool, `https://127.0.0.1:${webhook}`]))
  const manifests = await readManifests(chosen, { urlOf: (tool) => urlOf.get(tool)!, ca: plane.ca })
  await install(client, manifests.crds)
  progress(`${manifests.crds.length} CustomResourceDefinitions established`)

  const paths = await toolPaths(...chosen.map(({ tool }) => tool))
  const kubeconfig = plane.kubeconfigOf(managersUser.name)
  const programs = new Programs('managers')
  const engine = await startEngineStub()
  const dispose = async () => {
    await programs[Symbol.asyncDispose]()
    engine.close()
  }
  try {
    const certificates = await servingCertificate(plane, programs.folder)
    const env = { ...process.env, KUBECONFIG: kubeconfig, POD_IP: '127.0.0.1', DOCKER_HOST: engine.url }
    const run = async (tools: readonly string[]) => {
      const started = placed.flatMap(({ tool, ports: { webhook, health, diagnostics } }, i) => {
        if (!tools.includes(tool)) return []
        const args = [
          '--leader-elect=false',
          `--webhook-port=${webhook}`,
          `--webhook-cert-dir=${certificates}`,
          `--health-addr=127.0.0.1:${health}`,
          `--diagnostics-address=127.0.0.1:${diagnostics}`,
          '--insecure-diagnostics=true',
          '--logging-format=json',
          `--feature-gates=${gates}`,
          ...flags,
        ]
        // As in upstream's images: client-go names the field manager after the program.
        const program = programs.start(tool, paths[i]!, args, { env, disposable: true, argv0: 'manager' })
        return { health, program }
      })
      for (const { program, health } of started) await ready(program, () => answers(`http://127.0.0.1:${health}/readyz`), 90)
    }
    await run(placed.map(({ tool }) => tool))
    progress(`${placed.length} managers ready`)
    // Last: while no server responds, they block every write.
    for (const hook of manifests.mutating) await client.apply(MutatingWebhookConfiguration, hook, { fieldManager })
    for (const hook of manifests.validating) await client.apply(ValidatingWebhookConfiguration, hook, { fieldManager })
    return {
      programs: programs.all,
      manifests,
      async restart(tools) {
        for (const program of programs.all) if (tools.includes(program.name) && program.ending === undefined) await program.kill()
        await run(tools)
      },
      async removeWebhooks() {
        for (const { metadata } of manifests.mutating) await client.delete(MutatingWebhookConfiguration, { name: metadata.name! })
        for (const { metadata } of manifests.validating)
          await client.delete(ValidatingWebhookConfiguration, { name: metadata.name! })
      },
      [Symbol.asyncDispose]: dispose,
    }
  } catch (err) {
    await dispose()
    throw err
  }
}

/** Applied by the server: with client-side apply the largest would not fit into an annotation. */
export async function install(client: Client, crds: Manifests['crds']): Promise<void> {
  for (const crd of crds) await client.apply(CustomResourceDefinition, crd, { fieldManager })
  await until(client, CustomResourceDefinition, 'all CustomResourceDefinitions Established', (found) =>
    crds.every(({ metadata: { name } }) => found.some((one) => one.metadata.name === name && isTrue(one, 'Established'))),
  )
}

/** One for all webhook servers. @returns the folder that holds it */
export async function servingCertificate({ authority }: ServedPlane, folder: string): Promise<string> {
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 'webhooks',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
    dnsNames: ['localhost'],
  })
  const certificates = join(folder, 'webhook')
  mkdirSync(certificates, { mode: 0o700 })
  writeFileSync(join(certificates, 'tls.crt'), certificate)
  writeFileSync(join(certificates, 'tls.key'), key, { mode: 0o600 })
  return certificates
}
