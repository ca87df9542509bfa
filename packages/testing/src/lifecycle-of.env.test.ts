import {
  AfterClusterUpgrade,
  AfterControlPlaneInitialized,
  AfterControlPlaneUpgrade,
  AfterWorkersUpgrade,
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
  BeforeControlPlaneUpgrade,
  BeforeWorkersUpgrade,
  CanUpdateMachine,
  CanUpdateMachineSet,
  DiscoverVariables,
  GeneratePatches,
  GenerateUpgradePlan,
  HandlerOverridesAnnotation,
  ObjectSelectorAnnotation,
  UpdateMachine,
  ValidateTopology,
} from '@capstan/api'
import {
  type AnswerOf,
  defineExtension,
  fail,
  holdFor,
  type HookTransport,
  inPlaceUpdates,
  NoAnswer,
  on,
  patchTemplates,
  proceedNow,
  proceedWith,
  template,
} from '@capstan/extension'
import { minutes, seconds, sleep, type VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { callText } from './call-text.ts'
import { type Lifecycle, lifecycleOf, type LifecycleOptions } from './lifecycle-of.ts'

/** Returns a handler that blocks when it gets a request for the first time. Two requests are the same if they differ only in the Cluster. */
function blockOnce(seconds: number, message: string) {
  const earlierRequests = new Set<string>()
  return ({ request }: { request: object }) => {
    const requestKey = JSON.stringify({ ...request, cluster: undefined })
    if (earlierRequests.has(requestKey)) return proceedNow()
    earlierRequests.add(requestKey)
    return holdFor(seconds, message)
  }
}

test('the trace has every lifecycle hook, in order', async () => {
  const go = () => proceedNow()
  const extension = defineExtension({
    name: 'sample',
    handlers: [
      on(BeforeClusterCreate, { name: 'create' }, blockOnce(5, 'waiting for quota')),
      on(AfterControlPlaneInitialized, { name: 'initialized' }, go),
      on(BeforeClusterUpgrade, { name: 'before-upgrade' }, go),
      on(BeforeControlPlaneUpgrade, { name: 'before-control-plane' }, go),
      on(AfterControlPlaneUpgrade, { name: 'after-control-plane' }, blockOnce(30, 'checking')),
      on(BeforeWorkersUpgrade, { name: 'before-workers' }, go),
      on(AfterWorkersUpgrade, { name: 'after-workers' }, go),
      on(AfterClusterUpgrade, { name: 'after-upgrade' }, go),
      on(BeforeClusterDelete, { name: 'delete' }, blockOnce(3, 'backing up')),
    ],
  })
  const { trace, calls, stuck } = await lifecycleOf(extension)
  expect(stuck).toBeUndefined()
  expect(trace).toMatchInlineSnapshot(`
    "   0.0  Discovery: handlers create, initialized, before-upgrade, before-control-plane, after-control-plane, before-workers, after-workers, after-upgrade, delete
       0.0  --- create
       0.0  created (1 control plane machine, 1 worker, Kubernetes v1.34.0)
       0.0  BeforeClusterCreate of create: wait 5 s (waiting for quota)
       5.0  BeforeClusterCreate of create: proceed
       5.5  infrastructure provisioned, endpoint 127.0.0.1:6443
       6.5  control plane initialized
       6.5  AfterControlPlaneInitialized of initialized: proceed
       7.3  Available after 7.3 s
      10.0  --- scale
      10.0  MachineDeployment default/demo-workers: scaling from 1 to 2
      10.8  Available
      15.0  --- upgrade
      15.0  upgrade from v1.34.0 to v1.36.0 requested
      15.0  BeforeClusterUpgrade of before-upgrade, v1.34.0 to v1.36.0: proceed
      15.0  BeforeControlPlaneUpgrade of before-control-plane, v1.34.0 to v1.35.0: proceed
      15.8  AfterControlPlaneUpgrade of after-control-plane, v1.35.0: wait 30 s (checking)
      45.8  AfterControlPlaneUpgrade of after-control-plane, v1.35.0: proceed
      45.8  BeforeControlPlaneUpgrade of before-control-plane, v1.35.0 to v1.36.0: proceed
      46.6  AfterControlPlaneUpgrade of after-control-plane, v1.36.0: wait 30 s (checking)
      76.6  AfterControlPlaneUpgrade of after-control-plane, v1.36.0: proceed
      76.6  BeforeWorkersUpgrade of before-workers, v1.34.0 to v1.36.0: proceed
      78.2  AfterWorkersUpgrade of after-workers, v1.36.0: proceed
      78.2  AfterClusterUpgrade of after-upgrade, v1.36.0: proceed
      78.2  upgraded to v1.36.0
      80.0  --- delete
      80.0  deletion requested
      80.0  BeforeClusterDelete of delete: wait 3 s (backing up)
      83.0  BeforeClusterDelete of delete: proceed
      83.0  deleted"
  `)
  expect(calls.every(({ extensionConfig }) => extensionConfig === 'sample')).toBe(true)
})

test('lifecycleOf adds to the ClusterClass the handlers for patches, their validation, variables and upgrade plans', async () => {
  const extension = defineExtension({
    name: 'topology',
    handlers: [
      on(DiscoverVariables, { name: 'variables' }, () =>
        proceedWith({ variables: [{ name: 'region', required: true, schema: { openAPIV3Schema: { type: 'string' } } }] }),
      ),
      on(
        GeneratePatches,
        { name: 'patches' },
        patchTemplates([
          template({ kind: 'LocalMachineTemplate' }, ({ template, variables }) => {
            template.metadata.labels = { ...template.metadata.labels, region: variables.string('region') }
          }),
        ]),
      ),
      on(ValidateTopology, { name: 'validation' }, ({ request }) =>
        request.items.length > 0 ? proceedNow() : fail('the request has no items'),
      ),
      on(GenerateUpgradePlan, { name: 'plan' }, ({ request }) => {
        const ahead = ['v1.35.7', 'v1.36.0'].filter((version) => version > request.fromControlPlaneKubernetesVersion)
        const workersUpgrades = request.fromWorkersKubernetesVersion === 'v1.36.0' ? [] : [{ version: 'v1.36.0' }]
        return proceedWith({ controlPlaneUpgrades: ahead.map((version) => ({ version })), workersUpgrades })
      }),
    ],
  })
  const { trace, stuck } = await lifecycleOf(extension, {
    variables: { region: 'eu1' },
    steps: ['create', 'upgrade'],
    machines: true,
  })
  expect(stuck).toBeUndefined()
  expect(trace).toMatchInlineSnapshot(`
    "   0.0  Discovery: handlers variables, patches, validation, plan
       0.0  DiscoverVariables of variables: variables region
       0.0  --- create
       0.0  created (1 control plane machine, 1 worker, Kubernetes v1.34.0)
       0.0  GeneratePatches of patches: patches 2 of 5 templates: LocalMachineTemplate of LocalControlPlane demo-control-plane, LocalMachineTemplate of MachineDeployment demo-workers
       0.0  ValidateTopology of validation: accepted
       0.0  ClusterClass default/managed: accepted
       0.0  ExtensionConfig topology: discovered, handlers: variables, patches, validation, plan
       0.5  infrastructure provisioned, endpoint 127.0.0.1:6443
       0.5  Machine default/demo-control-plane-1: Pending
       0.5  Machine default/demo-control-plane-1: Provisioning
       0.5  Machine default/demo-workers-1: Pending
       1.0  Machine default/demo-control-plane-1: Provisioned
       1.3  Machine default/demo-control-plane-1: Running (Node demo-control-plane-1, Kubernetes v1.34.0)
       1.5  control plane initialized
       1.5  Machine default/demo-workers-1: Provisioning
       2.0  Machine default/demo-workers-1: Provisioned
       2.3  Available after 2.3 s
       2.3  Machine default/demo-workers-1: Running (Node demo-workers-1, Kubernetes v1.34.0)
       5.0  --- upgrade
       5.0  upgrade from v1.34.0 to v1.36.0 requested
       5.0  GenerateUpgradePlan of plan, v1.34.0 to v1.36.0: control plane v1.35.7 then v1.36.0, workers v1.36.0
       5.0  GenerateUpgradePlan of plan, v1.35.7 to v1.36.0: control plane v1.36.0, workers v1.36.0
       5.0  Machine default/demo-control-plane-2: Pending
       5.0  Machine default/demo-control-plane-2: Provisioning
       5.5  Machine default/demo-control-plane-2: Provisioned
       5.8  GenerateUpgradePlan of plan, v1.36.0 to v1.36.0: control plane none, workers v1.36.0
       5.8  Machine default/demo-control-plane-1: Deleting
       5.8  Machine default/demo-control-plane-1: deleted
       5.8  Machine default/demo-control-plane-2: Running (Node demo-control-plane-2, Kubernetes v1.35.7)
       5.8  Machine default/demo-control-plane-3: Pending
       5.8  Machine default/demo-control-plane-3: Provisioning
       6.3  Machine default/demo-control-plane-3: Provisioned
       6.6  Machine default/demo-control-plane-2: Deleting
       6.6  Machine default/demo-control-plane-2: deleted
       6.6  Machine default/demo-control-plane-3: Running (Node demo-control-plane-3, Kubernetes v1.36.0)
       6.6  Machine default/demo-workers-2: Pending
       6.6  Machine default/demo-workers-2: Provisioning
       7.1  Machine default/demo-workers-2: Provisioned
       7.4  upgraded to v1.36.0
       7.4  Machine default/demo-workers-1: Deleting
       7.4  Machine default/demo-workers-1: deleted
       7.4  Machine default/demo-workers-2: Running (Node demo-workers-2, Kubernetes v1.36.0)"
  `)
})

test('core calls UpdateMachine for each Machine that an extension updates in place, and waits until the update is done', async () => {
  const inPlace = inPlaceUpdates({ machine: ['version'] })
  const installed = new Set<string>()
  const extension = defineExtension({
    name: 'in-place',
    handlers: [
      on(CanUpdateMachine, { name: 'can-update-machine' }, inPlace.canUpdateMachine),
      on(CanUpdateMachineSet, { name: 'can-update-set' }, inPlace.canUpdateMachineSet),
      on(UpdateMachine, { name: 'update' }, ({ request }) => {
        const { name } = request.desired.machine.metadata
        if (installed.has(name)) return proceedNow()
        installed.add(name)
        return holdFor(10, 'installing')
      }),
      on(AfterClusterUpgrade, { name: 'after-upgrade' }, () => proceedNow()),
    ],
  })
  const options: LifecycleOptions = { from: 'v1.35.0', steps: ['create', 'upgrade'], controlPlane: 3, workers: 2 }
  const { calls, stuck } = await lifecycleOf(extension, options)
  expect(stuck).toBeUndefined()
  const texts = calls.map(callText).map((text) => text.replace(/ demo-[\w-]+/, ''))
  expect(texts).toContain('CanUpdateMachine of can-update-machine, Machine: changes machine')
  expect(texts).toContain('CanUpdateMachineSet of can-update-set, MachineSet: changes machineSet')
  const waits = texts.filter((text) => text === 'UpdateMachine of update, Machine: wait 10 s (installing)')
  expect(waits).toHaveLength(installed.size)
  expect(installed.size).toBeGreaterThan(1)
  // After AfterClusterUpgrade, no hook except Discovery is called.
  expect(texts.filter((text) => !text.startsWith('Discovery')).at(-1)).toBe(
    'AfterClusterUpgrade of after-upgrade, v1.36.0: proceed',
  )
})

const gate = (answer: AnswerOf<typeof BeforeClusterCreate> = proceedNow()) =>
  defineExtension({ name: 'gate', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => answer)] })
const hooksOf = ({ calls }: Lifecycle) => calls.map(({ hook }) => hook.name)

test.each<[string, LifecycleOptions, string[]]>([
  ['matching labels is sent to the handler', { labels: { tier: 'prod' } }, ['Discovery', 'BeforeClusterCreate']],
  ['other labels is not sent to the handler', { labels: { tier: 'test' } }, ['Discovery']],
])('a Cluster with %s', async (_, options, hooks) => {
  const annotations = { [ObjectSelectorAnnotation]: 'tier=prod' }
  expect(hooksOf(await lifecycleOf(gate(), { ...options, annotations, steps: ['create'] }))).toEqual(hooks)
})

test('lifecycleOf passes settings to the handler, and does not call it for a namespace that is not selected', async () => {
  const settings: object[] = []
  const extension = defineExtension({
    name: 'gate',
    handlers: [
      on(BeforeClusterCreate, { name: 'gate' }, (call) => {
        settings.push(call.settings)
        return proceedNow()
      }),
    ],
  })
  await lifecycleOf(extension, { settings: { region: 'eu1' }, steps: ['create'] })
  expect(settings).toEqual([{ region: 'eu1' }])
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'other' } }
  expect(hooksOf(await lifecycleOf(extension, { namespaceSelector, steps: ['create'] }))).toEqual(['Discovery'])
})

test('lifecycleOf reports a Cluster that is still blocked after the time limit as stuck, with the reason', async () => {
  const options: LifecycleOptions = { patience: minutes(2), steps: ['create', 'delete'] }
  const { trace, stuck } = await lifecycleOf(gate(holdFor(60, 'no quota')), options)
  expect(stuck).toEqual({
    step: 'create',
    why: 'TopologyReconciled is False: Following hooks are blocking Cluster topology creation: BeforeClusterCreate: no quota',
  })
  expect(trace).toMatchInlineSnapshot(`
    "   0.0  Discovery: handlers gate
       0.0  --- create
       0.0  created (1 control plane machine, 1 worker, Kubernetes v1.34.0)
       0.0  BeforeClusterCreate of gate: wait 60 s (no quota)
      60.0  BeforeClusterCreate of gate: wait 60 s (no quota)
     120.0  BeforeClusterCreate of gate: wait 60 s (no quota)
     120.0  create is not done after 2m0s: TopologyReconciled is False: Following hooks are blocking Cluster topology creation: BeforeClusterCreate: no quota"
  `)
})

test('the trace has errors thrown by handlers, of which core sees only status 500', async () => {
  const extension = defineExtension({
    name: 'gate',
    handlers: [
      on(BeforeClusterCreate, { name: 'gate' }, () => {
        throw new TypeError('there is no region')
      }),
    ],
  })
  const { trace, stuck } = await lifecycleOf(extension, { patience: seconds(1), steps: ['create'] })
  expect(stuck?.why).toContain('got response with status code 500 != 200')
  expect(trace.split('\n').filter((line) => line.includes('threw'))).toEqual([
    '   0.0  BeforeClusterCreate of gate threw TypeError: there is no region',
  ])
})

test('a blocked or failing deletion is stuck with the message of its hook', async () => {
  const deletionGate = (answer: AnswerOf<typeof BeforeClusterDelete>) =>
    defineExtension({ name: 'keep', handlers: [on(BeforeClusterDelete, { name: 'keep' }, () => answer)] })
  const why = async (answer: AnswerOf<typeof BeforeClusterDelete>) =>
    (await lifecycleOf(deletionGate(answer), { patience: seconds(1), steps: ['create', 'delete'] })).stuck?.why
  expect(await why(holdFor(60, 'backing up'))).toBe(
    'Deleting: Waiting for BeforeClusterDelete hook: Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: backing up',
  )
  expect(await why(fail('still used'))).toMatch(
    /^Deleting: Waiting for BeforeClusterDelete hook: .* got failure response with message: still used$/,
  )
})

test('an unreachable extension blocks its Clusters until it is reachable, and the circuit breaker prevents some calls', async () => {
  let attempts = 0
  const between = (transport: HookTransport): HookTransport => ({
    ...transport,
    async post(target, body, signal) {
      if (!target.url.pathname.includes('beforeclustercreate') || attempts++ >= 6) return transport.post(target, body, signal)
      throw new NoAnswer('ConnectionRefused', 'dial tcp: connect: connection refused')
    },
  })
  const { trace, stuck, calls } = await lifecycleOf(gate(), { between, steps: ['create'] })
  expect(stuck).toBeUndefined()
  expect(calls.filter(({ outcome }) => outcome.kind === 'failed')).toHaveLength(6)
  expect(trace).toMatchInlineSnapshot(`
    "   0.0  Discovery: handlers gate
       0.0  --- create
       0.0  created (1 control plane machine, 1 worker, Kubernetes v1.34.0)
       0.0  BeforeClusterCreate of gate: failed: http call failed: Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=10s": dial tcp: connect: connection refused
       0.0  topology not reconciled: failed to call extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": failed to call extension handler "gate.gate": http call failed: Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=10s": dial tcp: connect: connection refused
       0.1  topology not reconciled: failed to call extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": failed to call extension handler "gate.gate": not called, because the last 5 calls failed: http call failed: Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=10s": dial tcp: connect: connection refused
       1.3  topology not reconciled: failed to call extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": failed to call extension handler "gate.gate": http call failed: Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=10s": dial tcp: connect: connection refused
       2.5  topology not reconciled: failed to call extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": failed to call extension handler "gate.gate": not called, because the last 5 calls failed: http call failed: Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=10s": dial tcp: connect: connection refused
       5.1  BeforeClusterCreate of gate: proceed
       5.6  infrastructure provisioned, endpoint 127.0.0.1:6443
       6.6  control plane initialized
       7.4  Available after 7.4 s"
  `)
})

test('a handler that times out is skipped with failure policy Ignore', async () => {
  const annotations = { [HandlerOverridesAnnotation]: '{"gate": {"timeoutSeconds": 3}}' }
  const unresponsiveExtension = (clock: VirtualClock) =>
    defineExtension({
      name: 'gate',
      handlers: [
        on(BeforeClusterCreate, { name: 'gate', failurePolicy: 'Ignore' }, async ({ signal }) => {
          await sleep(clock, minutes(60), signal)
          return proceedNow()
        }),
      ],
    })
  const { trace, stuck } = await lifecycleOf(unresponsiveExtension, { annotations, steps: ['create'] })
  expect(stuck).toBeUndefined()
  expect(trace).toMatchInlineSnapshot(`
    "   0.0  Discovery: handlers gate
       0.0  --- create
       0.0  created (1 control plane machine, 1 worker, Kubernetes v1.34.0)
       3.0  BeforeClusterCreate of gate: failed: http call failed: Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=3s": http request timeout expired
       3.5  infrastructure provisioned, endpoint 127.0.0.1:6443
       4.5  control plane initialized
       5.3  Available after 5.3 s"
  `)
})
