/**
 * Applies the output of `capstan manifests` to a real kube-apiserver, and runs Clusters through their whole lifecycle. The managers have
 * only the permissions of their ServiceAccounts. They run with the arguments of their Deployments, and their webhooks are behind Services.
 * At the end, the audit log must show that no request of the managers was forbidden, and that they used each granted permission, except for
 * the permissions in `manifests/exceptions.ts`.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import {
  ClusterResourceSet,
  ClusterResourceSetBinding,
  ExtensionConfig,
  Machine,
  MachinePool,
  ReplicasManagedByAnnotation,
} from '@capstan/api'
import {
  type Client,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  type Kind,
  messageOf,
  Namespace,
  Pod as PodKind,
  Role,
  RoleBinding,
  Secret,
} from '@capstan/kube'
import { LocalControlPlane, LocalMachinePool } from '@capstan/local'
import type { Examination } from '../packages/cli/src/doctor/examine.ts'
import { Checks } from './processes/capstan-process.ts'
import {
  waitFor,
  type ClusterName,
  createClass,
  createCluster,
  createObjectsFromFile,
  inventory,
  undeletedObjects,
  localProvider,
  waitForAvailablePools,
  waitForPoolNodes,
  remediate,
  remove,
  scale,
  type LifeContext,
  upgrade,
  type DesiredState,
} from './life/life.ts'
import { auditPolicy, forbiddenRequests, type Grant, permissionText, readAudit, unusedPermissions } from './manifests/audit.ts'
import { reasonFor } from './manifests/exceptions.ts'
import { configured, install, type Provider, providers, userOf } from './manifests/install.ts'
import { addAddress, type Deployment, type Pod, startPod } from './manifests/pod.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { Programs } from './processes/programs.ts'
import { progressSince } from './shared/progress.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Suite } from './shared/suite.ts'
import { until } from './shared/until.ts'

export const manifestsSuite: Suite = {
  shows:
    'capstan manifests on a real kube-apiserver: the managers use the permissions of their ServiceAccounts, with known exceptions, and need no others',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'],
  ownNetwork: true,
  async run() {
    const checks = new Checks()
    for (const { address } of providers) addAddress(address)
    await using programs = new Programs('manifests')
    const audit = join(programs.folder, 'audit.log')
    const policy = join(programs.folder, 'audit-policy.json')
    writeFileSync(policy, JSON.stringify(auditPolicy(providers.map(userOf))))
    await using apiServer = await startRealApiServer({
      users: [strangerUser],
      progress: console.log,
      flags: [
        '--authorization-mode=Node,RBAC',
        '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
        // Without kube-proxy, the API server connects to Services at the addresses of their pods.
        '--enable-aggregator-routing=true',
        `--audit-policy-file=${policy}`,
        `--audit-log-path=${audit}`,
        '--audit-log-mode=blocking',
      ],
    })
    const pods = new Map<Provider['provider'], Pod>()
    try {
      await runWithManifests(apiServer, programs, pods, checks)
      for (const pod of pods.values()) {
        await pod.program.stop()
        checks.check(`${pod.program.name} exits on SIGTERM`, pod.program.ending === 'ended with code 0', pod.program.ending)
      }
      const grants = await grantsOf(apiServer)
      checkAudit(readFileSync(audit, 'utf8'), grants, checks)
    } catch (err) {
      for (const forbiddenRequest of forbiddenRequests(readAudit(readFileSync(audit, 'utf8'))))
        console.log(`forbidden: ${forbiddenRequest}`)
      for (const { program } of pods.values()) console.log(`--- ${program.name}\n${program.tail(3000)}`)
      throw err
    }
    return checks
  },
}

/** Creates, in dry runs, the Pod of a Deployment and a Pod that violates the Pod security standard of the namespace. */
async function checkPodSecurity(client: Client, { metadata, spec }: Deployment, checks: Checks): Promise<void> {
  const create = (fields: object) => {
    const pod = { metadata: { namespace: metadata.namespace, name: 'dry-run' }, spec: { ...spec.template.spec, ...fields } }
    return client.create(PodKind, pod as never, { dryRun: true }).then(() => 'admitted', messageOf)
  }
  const admitted = await create({})
  checks.check(`${metadata.namespace} admits the Pods of its Deployment`, admitted === 'admitted', admitted)
  const privileged = await create({ hostNetwork: true })
  const isRejected = /violates PodSecurity "restricted/.test(privileged)
  checks.check(`${metadata.namespace} rejects a Pod with hostNetwork`, isRejected, privileged)
}

async function runWithManifests(
  apiServer: RunningApiServer,
  programs: Programs,
  pods: Map<Provider['provider'], Pod>,
  checks: Checks,
): Promise<void> {
  const progress = progressSince()
  const client = apiServer.client()
  const deployments = new Map<Provider['provider'], Deployment>()
  for (const provider of providers) deployments.set(provider.provider, await install(apiServer, programs, provider))
  for (const deployment of deployments.values()) await checkPodSecurity(client, deployment, checks)
  progress('manifests applied')
  const start = async (startedProviders: readonly Provider[] = providers) => {
    for (const provider of startedProviders) {
      const deployment = deployments.get(provider.provider)!
      pods.set(provider.provider, await startPod({ apiServer, programs, deployment, address: provider.address }))
    }
    await configured(client)
  }
  await start()
  progress('managers ready, webhooks configured')
  // The manager of the local provider simulates the workload clusters, which would end with it. So it is restarted before any exist.
  await pods.get('local')!.program.stop()
  await start(providers.slice(1))
  await checkMetrics(apiServer, checks)
  await checkDoctor(apiServer, pods, start, checks)

  const namespace = 'team'
  await client.create(Namespace, { metadata: { name: namespace } })
  let restarted: Promise<void> = Promise.resolve()
  const writes = new Set<Promise<unknown>>()
  const restart = () => {
    restarted = (async () => {
      await Promise.allSettled(writes)
      await pods.get('core')!.program.stop()
      await start(providers.slice(0, 1))
      progress('core stopped and started again')
    })()
    return restarted
  }
  /**
   * Writes only while core runs, because its webhooks are needed. The write waits for a restart, and the next restart waits for the write.
   */
  const whileServed = async <T>(write: () => Promise<T>): Promise<T> => {
    let waitedFor: Promise<void> | undefined
    while (waitedFor !== restarted) {
      waitedFor = restarted
      await waitedFor
    }
    const written = write()
    writes.add(written)
    try {
      return await written
    } finally {
      writes.delete(written)
    }
  }
  const context: LifeContext = {
    client: {
      ...client,
      create: (...args) => whileServed(() => client.create(...args)),
      patch: (...args) => whileServed(() => client.patch(...args)),
      delete: (...args) => whileServed(() => client.delete(...args)),
    },
    namespace,
    provider: localProvider,
    checks,
    progress,
    limit: 90,
  }
  await createClass(context)
  await createResourceSet(context)
  await checkWebhooks(context, apiServer.ca)
  const before = await inventory(context)

  const runPhases = async (name: ClusterName) => {
    const step = (line: string) => progress(`${name}: ${line}`)
    const first: DesiredState = { version: 'v1.33.0', controlPlane: 1, workers: 2 }
    await createCluster(context, name, first)
    if (name === 'classy') await waitForAvailablePools(context, name, 1)
    else await changePoolAndLabel(context)
    step('Available')
    let desired = first
    if (name === 'classy') {
      desired = { ...first, controlPlane: 3 }
      await scale(context, name, desired)
      step('scaled')
      desired = { ...desired, version: 'v1.34.0' }
      await upgrade(context, name, [desired.version], desired, restart)
      step('upgraded')
    }
    await remediate(context, name, 'worker', desired)
    step('worker remediated')
    await until(client, ClusterResourceSetBinding, `${name}: resources applied`, (all) =>
      all.some(
        ({ metadata, spec }) => metadata.name === name && spec?.bindings?.some((binding) => binding.resources?.[0]?.applied),
      ),
    )
    await remove(context, name)
    step('deleted')
  }
  await Promise.all([runPhases('classy'), runPhases('plain')])
  const undeleted = await undeletedObjects(context, before)
  checks.check('all objects of deleted Clusters are deleted', undeleted.length === 0, undeleted)
}

/** Checks that an administrator can read metrics, and that a request without credentials is rejected. */
async function checkMetrics(apiServer: RunningApiServer, checks: Checks): Promise<void> {
  for (const { provider, address } of providers) {
    const status = (token: string | undefined) =>
      new Promise<number>((resolve, reject) => {
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
        request(`https://${address}:8443/metrics`, { headers, rejectUnauthorized: false }, (response) => {
          response.resume()
          resolve(response.statusCode!)
        })
          .on('error', reject)
          .end()
      })
    const statuses = [await status(apiServer.token), await status(undefined)]
    checks.check(
      `an administrator can read the metrics of ${provider}, and a client without credentials cannot`,
      statuses.join() === '200,401',
      statuses,
    )
  }
}

/**
 * Runs `capstan doctor` three times. It must have no findings at first, then report the permissions that another user lacks, and finally,
 * while core is stopped, the webhooks without a server.
 */
async function checkDoctor(
  apiServer: RunningApiServer,
  pods: ReadonlyMap<Provider['provider'], Pod>,
  start: (which: readonly Provider[]) => Promise<void>,
  checks: Checks,
): Promise<void> {
  const runDoctor = (kubeconfig: string) => {
    const args = ['packages/cli/bin/capstan.js', 'doctor', '--kubeconfig', kubeconfig, '--output', 'json']
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    const { findings = [], checked = {} } = (stdout === '' ? {} : JSON.parse(stdout)) as Partial<Examination>
    return { status, stderr, findings, checked }
  }
  const examination = runDoctor(apiServer.kubeconfig)
  checks.check('doctor has no findings', examination.status === 0 && examination.findings.length === 0, examination)
  const unprivileged = runDoctor(apiServer.kubeconfigOf(strangerUser.name))
  const missingPermissions = unprivileged.findings.filter(({ area }) => area === 'permissions')
  const areNamed = ['list machines.cluster.x-k8s.io', 'create secrets'].every((permission) =>
    missingPermissions.some(({ subject }) => subject === permission),
  )
  checks.check('doctor names the permissions that a user lacks', unprivileged.status === 1 && areNamed, unprivileged)
  await pods.get('core')!.program.stop()
  const unserved = runDoctor(apiServer.kubeconfig)
  const subjects = unserved.findings.map(({ severity, area, subject }) => `${severity} ${area} ${subject}`)
  const expected = [
    'error webhooks ValidatingWebhookConfiguration capstan-core',
    'error webhooks conversion of the core provider',
  ]
  checks.check(
    'doctor names the webhooks of a stopped manager, admission and conversion',
    unserved.status === 1 && subjects.sort().join() === expected.join(),
    unserved,
  )
  await start(providers.slice(0, 1))
}

/** A user without role bindings of its own. */
const strangerUser = { name: 'stranger' }

/**
 * Creates a MachinePool, scales it down, then sets the number of its machines as an autoscaler does. Then adds a label to the Machines of the
 * control plane in place.
 */
async function changePoolAndLabel(context: LifeContext): Promise<void> {
  const { client, namespace } = context
  await createObjectsFromFile(context, 'local-pool.yaml')
  await waitForPoolNodes(context, 'plain', 2)
  const key = { namespace, name: 'pool' }
  await client.patch(MachinePool, key, { type: 'merge', body: { spec: { replicas: 1 } } })
  await waitForPoolNodes(context, 'plain', 1)
  const annotations = { [ReplicasManagedByAnnotation]: 'the provider' }
  await client.patch(MachinePool, key, { type: 'merge', body: { metadata: { annotations } } })
  await client.patch(LocalMachinePool, key, { type: 'merge', body: { spec: { simulated: { replicas: 2 } } } })
  await waitForPoolNodes(context, 'plain', 2)
  const body = { spec: { machineTemplate: { metadata: { labels: { changed: 'in-place' } } } } }
  await client.patch(LocalControlPlane, { namespace, name: 'plain' }, { type: 'merge', body })
  await waitFor(context, Machine, 'plain: label of the control plane Machine', (all) =>
    all.some(({ metadata, spec }) => spec.clusterName === 'plain' && metadata.labels?.changed === 'in-place'),
  )
}

/** Checks a validating webhook and a conversion webhook of core, both behind its Service. */
async function checkWebhooks({ client, namespace, checks }: LifeContext, ca: string): Promise<void> {
  const old = { ...ExtensionConfig, version: 'v1alpha1' } as unknown as Kind
  // Core copies the certificate authority from this Secret into the ExtensionConfig.
  const annotations = { 'runtime.cluster.x-k8s.io/inject-ca-from-secret': `${namespace}/authority` }
  await client.create(Secret, { metadata: { name: 'authority', namespace }, stringData: { 'ca.crt': ca } } as never)
  const create = (name: string, clientConfig: object) =>
    client.create(old, { metadata: { name, annotations }, spec: { clientConfig } } as never)
  const response = await create('wrong', { url: 'http://quota' }).then(() => 'it was accepted', String)
  checks.check(
    'a webhook behind a Service rejects an invalid object',
    response.includes("'https' is the only allowed URL scheme"),
    response,
  )
  await create('quota', { service: { name: 'quota', namespace } })
  const stored = await client.get(ExtensionConfig, { name: 'quota' })
  checks.check('a webhook behind a Service converts objects', stored.spec.clientConfig.service?.port === 443, stored.spec)
  await until(client, ExtensionConfig, 'discovery of the extension was attempted', ([extensionConfig]) =>
    (extensionConfig?.status?.conditions ?? []).some(({ type, status }) => type === 'Discovered' && status === 'False'),
  )
  await client.delete(ExtensionConfig, { name: 'quota' })
}

/** Creates a ClusterResourceSet that selects every Cluster and applies two ConfigMaps: one from a ConfigMap, the other from a Secret. */
async function createResourceSet({ client, namespace }: LifeContext): Promise<void> {
  const applied = (name: string) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } })
  await client.create(ConfigMap, { metadata: { name: 'resources', namespace }, data: { 'one.yaml': applied('from-set') } })
  const type = 'addons.cluster.x-k8s.io/resource-set'
  await client.create(Secret, {
    metadata: { name: 'resources', namespace },
    type,
    stringData: { 'one.yaml': applied('from-secret') },
  } as never)
  await client.create(ClusterResourceSet, {
    metadata: { name: 'set', namespace },
    spec: {
      clusterSelector: { matchExpressions: [{ key: 'without-resources', operator: 'DoesNotExist' }] },
      resources: ['ConfigMap', 'Secret'].map((kind) => ({ kind, name: 'resources' })),
      strategy: 'ApplyOnce',
    },
  } as never)
}

/** Reads the permissions of the providers' ServiceAccounts from the server. */
async function grantsOf(apiServer: RunningApiServer): Promise<Grant[]> {
  const client = apiServer.client()
  const { items: clusterRoles } = await client.list(ClusterRole)
  const { items: clusterBindings } = await client.list(ClusterRoleBinding)
  const { items: roles } = await client.list(Role)
  const { items: bindings } = await client.list(RoleBinding)
  const grants: Grant[] = []
  for (const provider of providers) {
    const user = userOf(provider)
    const isOfProvider = ({
      subjects = [],
    }: {
      readonly subjects?: readonly { readonly name: string; readonly namespace?: string }[]
    }) => subjects.some(({ name, namespace }) => name === provider.account && namespace === provider.namespace)
    for (const { roleRef } of clusterBindings.filter(isOfProvider)) {
      const boundRole = clusterRoles.find(({ metadata }) => metadata.name === roleRef.name)!
      // Each bound ClusterRole is aggregated. The grants name the roles that it aggregates, because the rules come from them.
      const labels = boundRole.aggregationRule?.clusterRoleSelectors?.[0]?.matchLabels ?? {}
      const aggregatedRoles = clusterRoles.filter(({ metadata }) =>
        Object.entries(labels).every(([label, value]) => metadata.labels?.[label] === value),
      )
      for (const { metadata, rules = [] } of aggregatedRoles) grants.push({ user, role: metadata.name, rules: rules ?? [] })
    }
    for (const { metadata, roleRef } of bindings.filter(isOfProvider)) {
      const boundRole = roles.find(
        (role) => role.metadata.name === roleRef.name && role.metadata.namespace === metadata.namespace,
      )!
      grants.push({ user, role: roleRef.name, namespace: metadata.namespace!, rules: boundRole.rules ?? [] })
    }
  }
  return grants
}

function checkAudit(log: string, grants: readonly Grant[], checks: Checks): void {
  const events = readAudit(log)
  const forbidden = forbiddenRequests(events)
  checks.check(`none of ${events.length} requests of the managers was forbidden`, forbidden.length === 0, forbidden)
  const exceptions = new Map<string, string[]>()
  const unexplained: string[] = []
  for (const permission of unusedPermissions(grants, events)) {
    const reason = reasonFor(permission)
    if (reason === undefined) unexplained.push(permissionText(permission))
    else exceptions.set(reason, [...(exceptions.get(reason) ?? []), permissionText(permission)])
  }
  checks.check('every granted permission was used, or is a known exception', unexplained.length === 0)
  for (const permission of unexplained) console.log(`  granted but not used: ${permission}`)
  for (const [reason, permissions] of exceptions) console.log(`  ${permissions.length} permissions not used: ${reason}`)
  checks.check('ServiceAccounts have permissions', grants.length >= 4, grants.length)
}
