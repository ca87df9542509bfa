/**
 * Tests the remediation of control plane Machines that a MachineHealthCheck finds unhealthy, with core's controllers on the virtual clock.
 * `npm run interop -- old-contract` runs this file with contract v1beta1.
 */
import { Cluster, Machine, MachineControlPlaneLabel, MachineHealthCheck, RemediateMachineAnnotation } from '@capstan/api'
import { minutes, Node, Secret, seconds } from '@capstan/kube'
import { conditionText, localProvider, type ProviderEnv, providerEnv, testContract } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { LocalCluster } from '../kinds/local-cluster.ts'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from '../kinds/local-machine.ts'
import { RemediationForAnnotation, RemediationInProgressAnnotation } from './remediation.ts'

let env: ProviderEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'demo' }
const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const ref = (group: string, kind: string, name: string) => ({ apiGroup: `${group}.capstan.dev`, kind, name })

interface Setup {
  readonly replicas?: number
  readonly remediation?: NonNullable<LocalControlPlane['spec']['remediation']>
}

/**
 * Creates a Cluster whose control plane Machines are remediated when Ready of their Node is False for 30 s, or when the Node does not exist
 * after a minute. Advances the clock by a minute.
 */
async function createControlPlane({ replicas = 3, remediation }: Setup = {}): Promise<void> {
  env = await providerEnv({ ...localProvider(), contract: testContract() })
  const { v1beta2Client: client } = env
  await client.create(LocalMachineTemplate, { ...named('machines'), spec: { template: { spec: {} } } })
  await client.create(LocalCluster, named('demo'))
  await client.create(LocalControlPlane, {
    ...named('demo'),
    spec: {
      replicas,
      version: 'v1.36.0',
      ...(remediation ? { remediation } : {}),
      machineTemplate: { spec: { infrastructureRef: ref('infrastructure', 'LocalMachineTemplate', 'machines') } },
    },
  })
  await client.create(Cluster, {
    ...named('demo'),
    spec: {
      infrastructureRef: ref('infrastructure', 'LocalCluster', 'demo'),
      controlPlaneRef: ref('controlplane', 'LocalControlPlane', 'demo'),
    },
  })
  await client.create(MachineHealthCheck, {
    ...named('demo'),
    spec: {
      clusterName: 'demo',
      selector: { matchExpressions: [{ key: MachineControlPlaneLabel, operator: 'Exists' }] },
      checks: {
        nodeStartupTimeoutSeconds: 60,
        unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 30 }],
      },
    },
  })
  await env.advance(minutes(1))
}

const workload = async () =>
  env.connect(atob((await env.client.get(Secret, { ...key, name: 'demo-kubeconfig' })).data!['value']!))
const machines = async () => (await env.v1beta2Client.list(Machine, { namespace: 'default' })).items
const names = async () => (await machines()).map(({ metadata }) => metadata.name).sort()
const controlPlane = () => env.v1beta2Client.get(LocalControlPlane, key)
const ownerRemediated = async (name: string) =>
  conditionText(await env.v1beta2Client.get(Machine, { namespace: 'default', name }), 'OwnerRemediated')

const failure = { at: 'kubelet' as const, message: 'the disk is full' }
const breakMachine = (name: string) =>
  env.v1beta2Client.patch(
    LocalMachine,
    { namespace: 'default', name },
    { type: 'merge', body: { spec: { simulated: { failure } } } },
  )

test('an unhealthy Machine is replaced', async () => {
  await createControlPlane()
  const namesBefore = await names()
  await breakMachine(namesBefore[0]!)
  await env.advance(seconds(29))
  expect(await names()).toEqual(namesBefore)
  expect(conditionText(await controlPlane(), 'Remediating')).toBe('False NotRemediating')

  await env.advance(minutes(2))
  const [replacement, ...others] = (await names()).filter((name) => name !== namesBefore[1] && name !== namesBefore[2])
  expect(others).toEqual([])
  expect(replacement).not.toBe(namesBefore[0])
  const { annotations } = (await env.v1beta2Client.get(Machine, { namespace: 'default', name: replacement! })).metadata
  expect(JSON.parse(annotations![RemediationForAnnotation]!)).toMatchObject({ machine: namesBefore[0], retryCount: 0 })
  const { metadata, status } = await controlPlane()
  expect(metadata.annotations?.[RemediationInProgressAnnotation]).toBeUndefined()
  expect(status).toMatchObject({
    readyReplicas: 3,
    lastRemediation: { machine: namesBefore[0], retryCount: 0, time: expect.any(String) },
  })
  expect((await (await workload()).list(Node)).items).toHaveLength(3)
})

test('a Machine that a user marks for remediation is replaced', async () => {
  await createControlPlane()
  const namesBefore = await names()
  const body = { metadata: { annotations: { [RemediateMachineAnnotation]: '' } } }
  await env.v1beta2Client.patch(Machine, { namespace: 'default', name: namesBefore[1]! }, { type: 'merge', body })
  await env.advance(minutes(1))
  expect(await names()).toHaveLength(3)
  expect(await names()).not.toContain(namesBefore[1])
})

test('with two unhealthy Machines of three, one is replaced only after the other recovers, so that etcd keeps its quorum', async () => {
  await createControlPlane()
  const namesBefore = await names()
  await breakMachine(namesBefore[0]!)
  await breakMachine(namesBefore[1]!)
  await env.advance(minutes(2))
  expect(await names()).toEqual(namesBefore)
  const oldestFirst = (await machines())
    .map(({ metadata }) => metadata)
    .sort((a, b) => (a.creationTimestamp + a.name < b.creationTimestamp + b.name ? -1 : 1))
  const chosen = oldestFirst.find(({ name }) => name === namesBefore[0] || name === namesBefore[1])!.name
  const message =
    "LocalControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components or in etcd quorum loss"
  expect(await ownerRemediated(chosen)).toBe(`False CannotBeRemediated: ${message}`)
  const { status } = (await controlPlane()).status!.conditions!.find(({ type }) => type === 'Remediating')!
  expect(status).toBe('True')

  const recovering = chosen === namesBefore[0] ? namesBefore[1]! : namesBefore[0]!
  await env.v1beta2Client.patch(
    LocalMachine,
    { namespace: 'default', name: recovering },
    { type: 'merge', body: { spec: { simulated: null } } },
  )
  await env.advance(minutes(2))
  expect(await names()).toHaveLength(3)
  expect(await names()).not.toContain(chosen)
  expect(await ownerRemediated(recovering)).toBeUndefined()
  expect(conditionText(await controlPlane(), 'Remediating')).toBe('False NotRemediating')
})

test('two unhealthy Machines of five are replaced one after the other', async () => {
  await createControlPlane({ replicas: 5 })
  const namesBefore = await names()
  await breakMachine(namesBefore[0]!)
  await breakMachine(namesBefore[1]!)
  const counts: number[] = []
  for (let second = 0; second < 120; second++) {
    await env.advance(seconds(1))
    counts.push((await names()).length)
  }
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(4)
  expect((await names()).filter((name) => namesBefore.includes(name))).toEqual(namesBefore.slice(2))
  expect((await controlPlane()).status).toMatchObject({ readyReplicas: 5 })
})

test('replacements that fail as well are replaced maxRetry times, and a retry waits for retryPeriodSeconds', async () => {
  await createControlPlane({ remediation: { maxRetry: 2, retryPeriodSeconds: 300 } })
  const knownNames = new Set(await names())
  const [first] = knownNames
  await breakMachine(first!)
  // Running Machines stay up to date with the new template, because only the name and kind of their template are compared.
  await env.v1beta2Client.delete(LocalMachineTemplate, { namespace: 'default', name: 'machines' })
  await env.v1beta2Client.create(LocalMachineTemplate, {
    ...named('machines'),
    spec: { template: { spec: { simulated: { failure: { at: 'provisioning', message: 'no capacity' } } } } },
  })
  const created: number[] = []
  for (let minute = 0; minute < 30; minute++) {
    await env.advance(minutes(1))
    for (const name of await names()) {
      if (!knownNames.has(name)) created.push(minute)
      knownNames.add(name)
    }
  }
  // The first replacement, and two retries. The retry period of five minutes begins with a remediation, before its replacement is created.
  expect(created).toHaveLength(3)
  expect(created[2]! - created[1]!).toBeGreaterThanOrEqual(4)
  const { status } = await controlPlane()
  expect(status).toMatchObject({ replicas: 3, readyReplicas: 2, lastRemediation: { retryCount: 2 } })
  const last = (await machines()).find(({ status }) => status?.nodeRef === undefined)!.metadata.name
  const message = "LocalControlPlane can't remediate this machine because the operation already failed 2 times (MaxRetry)"
  expect(await ownerRemediated(last)).toBe(`False CannotBeRemediated: ${message}`)
})
