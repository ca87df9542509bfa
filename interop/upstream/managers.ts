/** Runs upstream's managers as processes, without Pods, kustomize and cert-manager. */
import { writeFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Client,
  ClusterRoleBinding,
  CustomResourceDefinition,
  isTrue,
  MutatingWebhookConfiguration,
  orAbsent,
  systemClock,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import { issueCertificate } from '@capstan/kube/node'
import type { ApiServerUser, RunningApiServer } from '../processes/api-server.ts'
import { answers, freePorts, type Program, Programs, ready } from '../processes/programs.ts'
import { toolPaths } from '../shared/tools.ts'
import { until } from '../shared/until.ts'
import { startEngineStub } from './engine-stub.ts'
import { type Manifests, readManifests } from './manifests.ts'

/** A manager of upstream, with the values of its kustomization in Cluster API v1.14. */
export interface Component {
  /** Name of the program in scripts/tools. */
  readonly tool: string
  /** Go module with its manifests. */
  readonly module: string
  /** Folder of the manifests in the module. */
  readonly config: string
  /** Prefix that kustomize adds to the names of its webhook configurations. In the manifests, all components use the same names. */
  readonly prefix: string
  /** Value of the label `cluster.x-k8s.io/provider`. */
  readonly provider: string
  /** Whether its CustomResourceDefinitions have labels with the contract versions that they implement. */
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
 * The user of the managers. It is not in the group `system:masters`, so that the API Priority and Fairness of kube-apiserver applies to it,
 * and kube-apiserver and `capstan apiserver` authorize it by RBAC.
 */
export const managersUser: ApiServerUser = { name: 'managers', groups: ['interop:managers'] }

const defaultGates = 'ClusterTopology=true,RuntimeSDK=true,MachinePool=true'
const fieldManager = 'interop'

export interface Managers extends AsyncDisposable {
  readonly programs: readonly Program[]
  readonly manifests: Manifests
  /** Kills the managers whose `Component.tool` is in `tools`, and starts them again at the same ports. Resolves when they are ready. */
  restart(tools: readonly string[]): Promise<void>
  /** Removes the webhook configurations. If they stay after the managers have stopped, the API server rejects creates and updates. */
  removeWebhooks(): Promise<void>
}

export interface ManagersOptions {
  /** The components to start; default all. */
  readonly components?: readonly Component[]
  /** Value of `--feature-gates`. Default: `defaultGates`. */
  readonly gates?: string
  /** Flags for each manager, in addition to the defaults. */
  readonly flags?: readonly string[]
}

/** Grants the managers all permissions. */
export async function allowManagers(client: Client): Promise<void> {
  const binding = {
    metadata: { name: 'interop-managers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: managersUser.groups!.map((name) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name })),
  }
  await client.apply(ClusterRoleBinding, binding, { fieldManager })
}

/**
 * Grants the managers all permissions, installs CustomResourceDefinitions, starts the managers, and installs webhook configurations when the
 * managers are ready.
 */
export async function startManagers(
  apiServer: RunningApiServer,
  progress: (line: string) => void,
  { components: chosen = components, gates = defaultGates, flags = [] }: ManagersOptions = {},
): Promise<Managers> {
  const client = apiServer.client()
  await allowManagers(client)
  const ports = await freePorts(chosen.length * 3)
  const withPorts = chosen.map((component, i) => ({
    ...component,
    ports: { webhook: ports[i * 3]!, health: ports[i * 3 + 1]!, diagnostics: ports[i * 3 + 2]! },
  }))
  const urls = new Map(withPorts.map(({ tool, ports: { webhook } }) => [tool, `https://127.0.0.1:${webhook}`]))
  const manifests = await readManifests(chosen, { urlOf: (tool) => urls.get(tool)!, ca: apiServer.ca })
  await install(client, manifests.crds)
  progress(`${manifests.crds.length} CustomResourceDefinitions established`)

  const paths = await toolPaths(...chosen.map(({ tool }) => tool))
  const kubeconfig = apiServer.kubeconfigOf(managersUser.name)
  const programs = new Programs('managers')
  const engine = await startEngineStub()
  const dispose = async () => {
    await programs[Symbol.asyncDispose]()
    engine.close()
  }
  try {
    const certificates = await servingCertificate(apiServer, programs.folder)
    const env = { ...process.env, KUBECONFIG: kubeconfig, POD_IP: '127.0.0.1', DOCKER_HOST: engine.url }
    const run = async (tools: readonly string[]) => {
      const started = withPorts.flatMap(({ tool, ports: { webhook, health, diagnostics } }, i) => {
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
        // `manager` is the name of the program in upstream's images. client-go puts the name in the User-Agent, from which the API server
        // takes the field manager.
        const program = programs.start(tool, paths[i]!, args, { env, disposable: true, argv0: 'manager' })
        return { health, program }
      })
      for (const { program, health } of started) await ready(program, () => answers(`http://127.0.0.1:${health}/readyz`), 90)
    }
    await run(withPorts.map(({ tool }) => tool))
    progress(`${withPorts.length} managers ready`)
    // Webhook configurations come last: while no webhook server responds, the API server rejects creates and updates of their kinds.
    for (const configuration of manifests.mutating)
      await client.apply(MutatingWebhookConfiguration, configuration, { fieldManager })
    for (const configuration of manifests.validating)
      await client.apply(ValidatingWebhookConfiguration, configuration, { fieldManager })
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

/** Installs CustomResourceDefinitions with server-side apply, and waits until they are Established. */
export async function install(client: Client, crds: Manifests['crds']): Promise<void> {
  for (const crd of crds) {
    await replaceConversionService(client, crd)
    await client.apply(CustomResourceDefinition, crd, { fieldManager })
  }
  await until(client, CustomResourceDefinition, 'all CustomResourceDefinitions Established', (installed) =>
    crds.every(({ metadata: { name } }) =>
      installed.some((definition) => definition.metadata.name === name && isTrue(definition, 'Established')),
    ),
  )
}

/**
 * Replaces the Service in the conversion webhook of an existing CustomResourceDefinition by the URL in `spec`. A stopped manager of Capstan
 * leaves the Service there, and a webhook cannot have both a Service and a URL.
 */
async function replaceConversionService(client: Client, { metadata: { name }, spec }: Manifests['crds'][number]): Promise<void> {
  const existing = await orAbsent(client.get(CustomResourceDefinition, { name }))
  if (existing?.spec.conversion?.webhook?.clientConfig?.service === undefined) return
  const clientConfig = { ...spec.conversion!.webhook!.clientConfig, service: null }
  const body = { spec: { conversion: { webhook: { clientConfig } } } }
  await client.patch(CustomResourceDefinition, { name }, { type: 'merge', body }, { fieldManager })
}

/** Writes one serving certificate for all webhook servers. @returns its folder */
export async function servingCertificate({ authority }: RunningApiServer, folder: string): Promise<string> {
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
