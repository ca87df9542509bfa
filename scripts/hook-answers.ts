/**
 * Responses to hooks that core accepts, and responses that it rejects: for authors of extensions in any language. What core says
 * of each is found by asking it. The requests that they answer are those of `fixture`.
 */
import {
  AfterControlPlaneInitialized,
  BeforeClusterCreate,
  BeforeClusterUpgrade,
  CanUpdateMachine,
  CanUpdateMachineSet,
  DiscoverVariables,
  Discovery,
  GeneratePatches,
  GenerateUpgradePlan,
  type Hook,
  hookApiVersion,
  UpdateMachine,
  ValidateTopology,
} from '@capstan/api'
import { fixture } from '@capstan/extension'

export interface AnswerCase {
  readonly hook: Hook
  /** Unique, and the name of its file. */
  readonly name: string
  /** Description of the response, for readers of the list. */
  readonly about: string
  /** 200 when absent. */
  readonly status?: number
  /** The body of the response, or an object that is sent as JSON. */
  readonly body: string | object
}

const success = { status: 'Success' }
const base64 = (document: unknown): string => Buffer.from(JSON.stringify(document)).toString('base64')

const gate = { name: 'gate', requestHook: { apiVersion: hookApiVersion(Discovery), hook: 'BeforeClusterCreate' } }
const discovered = (...handlers: object[]) => ({ ...success, handlers })

const [, machines] = fixture(GeneratePatches).items as [object, { uid: string }]
const item = (patch: object) => ({ ...success, items: [{ uid: machines.uid, ...patch }] })
const jsonPatch = (...operations: object[]) => item({ patchType: 'JSONPatch', patch: base64(operations) })
const delay = '/spec/template/spec/simulated/provisioningDelay'

const plan = (controlPlane: readonly unknown[], workers: readonly unknown[] = []) => ({
  ...success,
  controlPlaneUpgrades: controlPlane,
  workersUpgrades: workers,
})
const steps = (...versions: string[]) => versions.map((version) => ({ version }))

const variable = (name: string, openAPIV3Schema: object, more: object = {}) => ({
  ...success,
  variables: [{ name, ...more, schema: { openAPIV3Schema } }],
})

const toVersion = (path: string) => ({
  patchType: 'JSONPatch',
  patch: base64([{ op: 'replace', path, value: 'v1.35.0' }]),
})

export const acceptedAnswers: readonly AnswerCase[] = [
  {
    hook: Discovery,
    name: 'Discovery',
    about: 'All that a handler can say of itself.',
    body: discovered({ ...gate, timeoutSeconds: 5, failurePolicy: 'Ignore' }),
  },
  { hook: Discovery, name: 'Discovery-defaults', about: 'The least: 10 seconds, and Fail.', body: discovered(gate) },
  {
    hook: Discovery,
    name: 'Discovery-items',
    about: 'A list by the name that it had in the proposal is an unknown field, and ignored: nothing is registered.',
    body: { ...success, items: [gate] },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate',
    about: 'Go on. The field may be left out.',
    body: { ...success, retryAfterSeconds: 0 },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate-hold',
    about: 'Wait. The message is what users read: it must not change from call to call.',
    body: { ...success, retryAfterSeconds: 30, message: 'waiting for quota' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate-null',
    about: 'null is 0.',
    body: { ...success, retryAfterSeconds: null },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate-case',
    about: 'Keys may differ in case, values may not.',
    body: { Status: 'Success', RetryAfterSeconds: 30 },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate-unknown-field',
    about: 'What nobody knows is ignored.',
    body: { ...success, traceId: '4bf92f35' },
  },
  {
    hook: AfterControlPlaneInitialized,
    name: 'AfterControlPlaneInitialized-hold',
    about: 'Not a blocking hook: retryAfterSeconds is ignored.',
    body: { ...success, retryAfterSeconds: 30 },
  },
  { hook: BeforeClusterUpgrade, name: 'BeforeClusterUpgrade', about: 'Go on.', body: success },
  {
    hook: GenerateUpgradePlan,
    name: 'GenerateUpgradePlan',
    about: 'Without versions for the workers core finds the fewest.',
    body: plan(steps('v1.34.2', 'v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'GenerateUpgradePlan-workers',
    about: 'Workers may skip up to two minor versions.',
    body: plan(steps('v1.34.2', 'v1.35.0'), steps('v1.35.0')),
  },
  {
    hook: GeneratePatches,
    name: 'GeneratePatches',
    about: 'A JSON patch. Templates that are left out stay as they are.',
    body: jsonPatch({ op: 'replace', path: delay, value: '2s' }),
  },
  {
    hook: GeneratePatches,
    name: 'GeneratePatches-merge',
    about: 'A JSON merge patch.',
    body: item({ patchType: 'JSONMergePatch', patch: base64({ metadata: { labels: { zone: 'a' } } }) }),
  },
  {
    hook: GeneratePatches,
    name: 'GeneratePatches-nothing',
    about: 'No items, or patches with nothing in them: nothing is changed.',
    body: item({ patchType: 'JSONPatch', patch: base64([]) }),
  },
  {
    hook: GeneratePatches,
    name: 'GeneratePatches-left-out',
    about: 'Only spec, labels and annotations are taken over. The rest is left out without an error.',
    body: jsonPatch({ op: 'replace', path: '/metadata/name', value: 'mine' }),
  },
  { hook: ValidateTopology, name: 'ValidateTopology', about: 'Accept the topology.', body: success },
  {
    hook: DiscoverVariables,
    name: 'DiscoverVariables',
    about: 'Variables in the shape of ClusterClass v1beta2.',
    body: variable('region', { type: 'string', enum: ['eu1', 'us1'] }, { required: true }),
  },
  {
    hook: CanUpdateMachine,
    name: 'CanUpdateMachine',
    about: 'All that has to change can be changed.',
    body: { ...success, machinePatch: toVersion('/spec/version') },
  },
  {
    hook: CanUpdateMachine,
    name: 'CanUpdateMachine-nothing',
    about: 'Nothing can be changed: the machine is replaced.',
    body: success,
  },
  {
    hook: CanUpdateMachineSet,
    name: 'CanUpdateMachineSet',
    about: 'As CanUpdateMachine, one level deeper.',
    body: { ...success, machineSetPatch: toVersion('/spec/template/spec/version') },
  },
  { hook: UpdateMachine, name: 'UpdateMachine', about: 'Done.', body: success },
  {
    hook: UpdateMachine,
    name: 'UpdateMachine-running',
    about: 'Still at it: called again.',
    body: { ...success, retryAfterSeconds: 5, message: 'installing kubelet' },
  },
]

export const refusedAnswers: readonly AnswerCase[] = [
  // HTTP status and headers
  {
    hook: BeforeClusterCreate,
    name: 'status-500',
    about: 'Failures have code 200 and status Failure; another code is no answer.',
    status: 500,
    body: { status: 'Failure', message: 'no quota' },
  },
  { hook: BeforeClusterCreate, name: 'status-201', about: 'Only 200 is success.', status: 201, body: success },
  { hook: BeforeClusterCreate, name: 'status-301', about: 'Redirects are not followed.', status: 301, body: '' },
  {
    hook: BeforeClusterCreate,
    name: 'status-404',
    about: 'The path is all in lower case, and ends in the name of the handler.',
    status: 404,
    body: '404 page not found\n',
  },
  // Invalid JSON
  { hook: BeforeClusterCreate, name: 'empty', about: 'An answer has a body.', body: '' },
  { hook: BeforeClusterCreate, name: 'truncated', about: 'A body that ends too early.', body: '{"status":"Success"' },
  {
    hook: BeforeClusterCreate,
    name: 'byte-order-mark',
    about: 'UTF-8 without a mark at its beginning.',
    body: '\ufeff{"status":"Success"}',
  },
  {
    hook: BeforeClusterCreate,
    name: 'page',
    about: 'An error page of a proxy, with code 200.',
    body: '<html><body>Bad Gateway</body></html>',
  },
  {
    hook: BeforeClusterCreate,
    name: 'single-quotes',
    about: 'What printing a map gives in some languages.',
    body: "{'status': 'Success'}",
  },
  {
    hook: BeforeClusterCreate,
    name: 'not-a-number',
    about: 'NaN is no JSON.',
    body: '{"status":"Success","retryAfterSeconds":NaN}',
  },
  // JSON that does not match the schema
  { hook: BeforeClusterCreate, name: 'list', about: 'One object, not a list of them.', body: [success] },
  { hook: BeforeClusterCreate, name: 'no-status', about: 'The status must be there.', body: {} },
  { hook: BeforeClusterCreate, name: 'lower-case-status', about: 'Values do not differ in case.', body: { status: 'success' } },
  {
    hook: BeforeClusterCreate,
    name: 'unknown-status',
    about: 'There is Success and Failure.',
    body: { status: 'Pending', message: 'later' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'failure',
    about: 'A failure as it is meant. No failure policy ignores it.',
    body: { status: 'Failure', message: 'no quota in eu1' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'negative-wait',
    about: 'A time to wait is 0 or more. No failure policy ignores it.',
    body: { ...success, retryAfterSeconds: -5 },
  },
  {
    hook: BeforeClusterCreate,
    name: 'message-object',
    about: 'A message is a string.',
    body: { ...success, message: { text: 'hello' } },
  },
  ...(['5.0', '5.5', '"5"', '1e1', '2147483648', 'true'] as const).map(
    (number): AnswerCase => ({
      hook: BeforeClusterCreate,
      name: `retry-${number.replaceAll('"', '').replace('.', '-') + (number.startsWith('"') ? '-string' : '')}`,
      about: 'retryAfterSeconds is an integer of 32 bits, written without a point or an exponent.',
      body: `{"status":"Success","retryAfterSeconds":${number}}`,
    }),
  ),
  // Discovery
  {
    hook: Discovery,
    name: 'discovery-twice',
    about: 'Names are unique in the server, whatever the hook.',
    body: discovered(gate, gate),
  },
  {
    hook: Discovery,
    name: 'discovery-name',
    about: 'Names are DNS labels: lower case, no dots.',
    body: discovered({ ...gate, name: 'My.Gate' }),
  },
  {
    hook: Discovery,
    name: 'discovery-hook',
    about: 'Hooks are named in exact case. If core does not know one, it rejects all handlers.',
    body: discovered({ ...gate, requestHook: { ...gate.requestHook, hook: 'beforeclustercreate' } }),
  },
  {
    hook: Discovery,
    name: 'discovery-version',
    about: 'The group and version of hooks, not that of ExtensionConfig.',
    body: discovered({ ...gate, requestHook: { apiVersion: 'runtime.cluster.x-k8s.io/v1beta2', hook: 'BeforeClusterCreate' } }),
  },
  {
    hook: Discovery,
    name: 'discovery-no-hook',
    about: 'The hook is an object: apiVersion and hook.',
    body: discovered({ name: 'gate' }),
  },
  {
    hook: Discovery,
    name: 'discovery-hook-string',
    about: 'The hook is an object: apiVersion and hook.',
    body: discovered({ name: 'gate', requestHook: 'BeforeClusterCreate' }),
  },
  { hook: Discovery, name: 'discovery-timeout', about: 'At most 30 seconds.', body: discovered({ ...gate, timeoutSeconds: 31 }) },
  {
    hook: Discovery,
    name: 'discovery-timeout-fraction',
    about: 'Whole seconds.',
    body: '{"status":"Success","handlers":[{"name":"gate","timeoutSeconds":2.5}]}',
  },
  {
    hook: Discovery,
    name: 'discovery-policy',
    about: 'Ignore or Fail, in exact case.',
    body: discovered({ ...gate, failurePolicy: 'ignore' }),
  },
  // Plans
  { hook: GenerateUpgradePlan, name: 'plan-strings', about: 'Versions are objects.', body: plan(['v1.34.2', 'v1.35.0']) },
  { hook: GenerateUpgradePlan, name: 'plan-empty', about: 'An upgrade that is asked for takes a step.', body: plan([]) },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-skips',
    about: 'The control plane takes one minor version at a time.',
    body: plan(steps('v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-backwards',
    about: 'Each step is above the one before.',
    body: plan(steps('v1.34.2', 'v1.34.1', 'v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-short',
    about: 'The last step is the version that was asked for.',
    body: plan(steps('v1.34.2')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-workers',
    about: 'Workers take steps of the control plane.',
    body: plan(steps('v1.34.2', 'v1.35.0'), steps('v1.34.9', 'v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-version',
    about: 'Versions are as Kubernetes writes them.',
    body: plan(steps('latest')),
  },
  // Patches
  {
    hook: GeneratePatches,
    name: 'patch-list',
    about: 'A patch is base64 of the document, not the document.',
    body: item({ patchType: 'JSONPatch', patch: [{ op: 'remove', path: delay }] }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-object',
    about: 'A patch is base64 of the document, not the document.',
    body: item({ patchType: 'JSONMergePatch', patch: { spec: {} } }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-plain',
    about: 'A patch is base64 of the document, not the document.',
    body: item({ patchType: 'JSONPatch', patch: '[]' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-unpadded',
    about: 'With padding.',
    body: item({ patchType: 'JSONPatch', patch: base64([]).replace(/=+$/, '') }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-url-safe',
    about: 'The standard alphabet: + and /, not - and _.',
    body: item({ patchType: 'JSONPatch', patch: 'W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvYSIsInZhbHVlIjoi_--_In1d' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-uid',
    about: 'The uid is that of the request.',
    body: {
      ...success,
      items: [{ uid: 'LocalMachineTemplate', patchType: 'JSONPatch', patch: base64([{ op: 'remove', path: delay }]) }],
    },
  },
  {
    hook: GeneratePatches,
    name: 'patch-no-type',
    about: 'A patch says of which type it is.',
    body: item({ patch: base64([{ op: 'remove', path: delay }]) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-type',
    about: 'JSONPatch or JSONMergePatch.',
    body: item({ patchType: 'application/json-patch+json', patch: base64([{ op: 'remove', path: delay }]) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-garbage',
    about: 'The document is JSON.',
    body: item({ patchType: 'JSONPatch', patch: Buffer.from('- op: remove').toString('base64') }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-one-operation',
    about: 'A JSON patch is a list of operations.',
    body: item({ patchType: 'JSONPatch', patch: base64({ op: 'remove', path: delay }) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-merge-list',
    about: 'A merge patch is an object.',
    body: item({ patchType: 'JSONMergePatch', patch: base64([{ op: 'remove', path: delay }]) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-remove',
    about: 'What is removed must be there.',
    body: jsonPatch({ op: 'remove', path: '/spec/template/spec/size' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-replace',
    about: 'What is replaced must be there.',
    body: jsonPatch({ op: 'replace', path: '/spec/template/spec/size', value: 'big' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-add',
    about: 'Parents are not made.',
    body: jsonPatch({ op: 'add', path: '/spec/template/spec/network/mtu', value: 1500 }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-test',
    about: 'A test that fails fails the topology.',
    body: jsonPatch({ op: 'test', path: delay, value: '9s' }),
  },
  // Variables
  {
    hook: DiscoverVariables,
    name: 'variables-map',
    about: 'A list, not a map by name.',
    body: { ...success, variables: { region: { schema: {} } } },
  },
  {
    hook: DiscoverVariables,
    name: 'variables-name',
    about: 'Names have no dots.',
    body: variable('my.region', { type: 'string' }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-builtin',
    about: 'One name is taken.',
    body: variable('builtin', { type: 'object' }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-type',
    about: 'Every schema says its type.',
    body: variable('region', { enum: ['eu1'] }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-default',
    about: 'A default is a value of the schema.',
    body: variable('region', { type: 'string', enum: ['eu1'], default: 'us1' }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-items',
    about: 'A list says what its items are.',
    body: variable('regions', { type: 'array' }),
  },
  // The rest
  {
    hook: ValidateTopology,
    name: 'validate-failure',
    about: 'The topology is rejected; the message has the reason.',
    body: { status: 'Failure', message: 'machines run in the EU only' },
  },
  {
    hook: CanUpdateMachine,
    name: 'in-place-no-type',
    about: 'A patch says of which type it is.',
    body: { ...success, machinePatch: { patch: base64([]) } },
  },
  {
    hook: CanUpdateMachine,
    name: 'in-place-replace',
    about: 'Patches are applied to what is there now.',
    body: {
      ...success,
      machinePatch: { patchType: 'JSONPatch', patch: base64([{ op: 'replace', path: '/spec/failureDomain', value: 'a' }]) },
    },
  },
  {
    hook: CanUpdateMachineSet,
    name: 'in-place-depth',
    about: 'In a MachineSet the spec of machines is below spec.template.',
    body: { ...success, machineSetPatch: toVersion('/spec/version') },
  },
  {
    hook: UpdateMachine,
    name: 'update-failure',
    about: 'Tried again, later and later.',
    body: { status: 'Failure', message: 'kubelet does not start' },
  },
]
