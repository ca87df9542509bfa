/**
 * Responses to hooks that core accepts, and responses that core rejects, for authors of extensions in any language. Each one responds to the
 * request that `fixture` returns for the hook. `hook-fixtures.ts` passes each response to core and records the result.
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

export interface ResponseCase {
  readonly hook: Hook
  /** Unique name; the generated file has this name, too. */
  readonly name: string
  /** Description of the response, for `index.json`, and for docs/reference/errors.md if core rejects the response. */
  readonly about: string
  /** HTTP status; default 200. */
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
const delayPath = '/spec/template/spec/simulated/provisioningDelay'

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

export const acceptedResponses: readonly ResponseCase[] = [
  {
    hook: Discovery,
    name: 'Discovery',
    about: 'All fields of a handler.',
    body: discovered({ ...gate, timeoutSeconds: 5, failurePolicy: 'Ignore' }),
  },
  {
    hook: Discovery,
    name: 'Discovery-defaults',
    about: 'Only the required fields. Defaults: timeout 10 seconds, failure policy Fail.',
    body: discovered(gate),
  },
  {
    hook: Discovery,
    name: 'Discovery-items',
    about:
      'The list has the name `items`, as in upstream’s proposal. This field is unknown and ignored: no handler is registered.',
    body: { ...success, items: [gate] },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate',
    about: 'Allows the next step. retryAfterSeconds may be omitted.',
    body: { ...success, retryAfterSeconds: 0 },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate-hold',
    about: 'Blocks the next step. Users read the message in a condition, so it must not change from call to call.',
    body: { ...success, retryAfterSeconds: 30, message: 'waiting for quota' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'BeforeClusterCreate-null',
    about: 'null counts as 0.',
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
    about: 'Unknown fields are ignored.',
    body: { ...success, traceId: '4bf92f35' },
  },
  {
    hook: AfterControlPlaneInitialized,
    name: 'AfterControlPlaneInitialized-hold',
    about: 'Not a blocking hook: retryAfterSeconds is ignored.',
    body: { ...success, retryAfterSeconds: 30 },
  },
  { hook: BeforeClusterUpgrade, name: 'BeforeClusterUpgrade', about: 'Allows the next step.', body: success },
  {
    hook: GenerateUpgradePlan,
    name: 'GenerateUpgradePlan',
    about: 'Without versions for the workers, core computes the fewest possible steps for them.',
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
    about: 'A JSON patch. Templates without an item stay unchanged.',
    body: jsonPatch({ op: 'replace', path: delayPath, value: '2s' }),
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
    about: 'An empty patch changes nothing; so does an empty list of items.',
    body: item({ patchType: 'JSONPatch', patch: base64([]) }),
  },
  {
    hook: GeneratePatches,
    name: 'GeneratePatches-left-out',
    about: 'Only changes of spec, labels and annotations are applied. Other changes are dropped without an error.',
    body: jsonPatch({ op: 'replace', path: '/metadata/name', value: 'mine' }),
  },
  { hook: ValidateTopology, name: 'ValidateTopology', about: 'Accepts the topology.', body: success },
  {
    hook: DiscoverVariables,
    name: 'DiscoverVariables',
    about: 'Variables as in ClusterClass v1beta2.',
    body: variable('region', { type: 'string', enum: ['eu1', 'us1'] }, { required: true }),
  },
  {
    hook: CanUpdateMachine,
    name: 'CanUpdateMachine',
    about: 'The patch covers all differences: the Machine is updated in place.',
    body: { ...success, machinePatch: toVersion('/spec/version') },
  },
  {
    hook: CanUpdateMachine,
    name: 'CanUpdateMachine-nothing',
    about: 'Without patches no difference is covered: the Machine is replaced.',
    body: success,
  },
  {
    hook: CanUpdateMachineSet,
    name: 'CanUpdateMachineSet',
    about: 'As CanUpdateMachine, but the spec of Machines is at /spec/template/spec.',
    body: { ...success, machineSetPatch: toVersion('/spec/template/spec/version') },
  },
  { hook: UpdateMachine, name: 'UpdateMachine', about: 'The update is complete.', body: success },
  {
    hook: UpdateMachine,
    name: 'UpdateMachine-running',
    about: 'The update is in progress: core calls again.',
    body: { ...success, retryAfterSeconds: 5, message: 'installing kubelet' },
  },
]

export const rejectedResponses: readonly ResponseCase[] = [
  // HTTP status
  {
    hook: BeforeClusterCreate,
    name: 'status-500',
    about: 'A failure must have code 200 and status Failure. Core does not parse the body of a response with another code.',
    status: 500,
    body: { status: 'Failure', message: 'no quota' },
  },
  { hook: BeforeClusterCreate, name: 'status-201', about: 'Code 201: only 200 is accepted.', status: 201, body: success },
  { hook: BeforeClusterCreate, name: 'status-301', about: 'A redirect: core does not follow it.', status: 301, body: '' },
  {
    hook: BeforeClusterCreate,
    name: 'status-404',
    about: 'Code 404: the server must serve the path in lower case, ending with the name of the handler.',
    status: 404,
    body: '404 page not found\n',
  },
  // Invalid JSON
  { hook: BeforeClusterCreate, name: 'empty', about: 'An empty body.', body: '' },
  { hook: BeforeClusterCreate, name: 'truncated', about: 'A truncated body.', body: '{"status":"Success"' },
  {
    hook: BeforeClusterCreate,
    name: 'byte-order-mark',
    about: 'A byte order mark before the JSON.',
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
    about: 'Single quotes, as some languages print a map.',
    body: "{'status': 'Success'}",
  },
  {
    hook: BeforeClusterCreate,
    name: 'not-a-number',
    about: 'NaN, which JSON does not have.',
    body: '{"status":"Success","retryAfterSeconds":NaN}',
  },
  // Fields of the response
  { hook: BeforeClusterCreate, name: 'list', about: 'A list instead of an object.', body: [success] },
  { hook: BeforeClusterCreate, name: 'no-status', about: 'No status.', body: {} },
  {
    hook: BeforeClusterCreate,
    name: 'lower-case-status',
    about: 'The status in lower case: values are case-sensitive.',
    body: { status: 'success' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'unknown-status',
    about: 'A status other than Success and Failure.',
    body: { status: 'Pending', message: 'later' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'failure',
    about: 'A correct failure. No failure policy ignores it.',
    body: { status: 'Failure', message: 'no quota in eu1' },
  },
  {
    hook: BeforeClusterCreate,
    name: 'negative-wait',
    about: 'A negative retryAfterSeconds. No failure policy ignores it.',
    body: { ...success, retryAfterSeconds: -5 },
  },
  {
    hook: BeforeClusterCreate,
    name: 'message-object',
    about: 'A message that is not a string.',
    body: { ...success, message: { text: 'hello' } },
  },
  ...(['5.0', '5.5', '"5"', '1e1', '2147483648', 'true'] as const).map(
    (number): ResponseCase => ({
      hook: BeforeClusterCreate,
      name: `retry-${number.replaceAll('"', '').replace('.', '-') + (number.startsWith('"') ? '-string' : '')}`,
      about: 'retryAfterSeconds must be a 32-bit integer without decimal point or exponent.',
      body: `{"status":"Success","retryAfterSeconds":${number}}`,
    }),
  ),
  // Discovery
  {
    hook: Discovery,
    name: 'discovery-twice',
    about: 'Two handlers with one name: names must be unique in the server, also across hooks.',
    body: discovered(gate, gate),
  },
  {
    hook: Discovery,
    name: 'discovery-name',
    about: 'A name with capital letters and a dot: it must be a DNS label.',
    body: discovered({ ...gate, name: 'My.Gate' }),
  },
  {
    hook: Discovery,
    name: 'discovery-hook',
    about: 'The hook in lower case: hook names are case-sensitive. Core rejects all handlers because of one unknown hook.',
    body: discovered({ ...gate, requestHook: { ...gate.requestHook, hook: 'beforeclustercreate' } }),
  },
  {
    hook: Discovery,
    name: 'discovery-version',
    about: 'The apiVersion of ExtensionConfigs instead of that of hooks.',
    body: discovered({ ...gate, requestHook: { apiVersion: 'runtime.cluster.x-k8s.io/v1beta2', hook: 'BeforeClusterCreate' } }),
  },
  {
    hook: Discovery,
    name: 'discovery-no-hook',
    about: 'No requestHook.',
    body: discovered({ name: 'gate' }),
  },
  {
    hook: Discovery,
    name: 'discovery-hook-string',
    about: 'requestHook is a string instead of an object with apiVersion and hook.',
    body: discovered({ name: 'gate', requestHook: 'BeforeClusterCreate' }),
  },
  {
    hook: Discovery,
    name: 'discovery-timeout',
    about: 'A timeout of more than 30 seconds.',
    body: discovered({ ...gate, timeoutSeconds: 31 }),
  },
  {
    hook: Discovery,
    name: 'discovery-timeout-fraction',
    about: 'A timeout that is not an integer.',
    body: '{"status":"Success","handlers":[{"name":"gate","timeoutSeconds":2.5}]}',
  },
  {
    hook: Discovery,
    name: 'discovery-policy',
    about: 'A failure policy in lower case: it must be Ignore or Fail.',
    body: discovered({ ...gate, failurePolicy: 'ignore' }),
  },
  // Upgrade plans
  {
    hook: GenerateUpgradePlan,
    name: 'plan-strings',
    about: 'Strings instead of objects with a version.',
    body: plan(['v1.34.2', 'v1.35.0']),
  },
  { hook: GenerateUpgradePlan, name: 'plan-empty', about: 'No step, although an upgrade was requested.', body: plan([]) },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-skips',
    about: 'A step of the control plane that skips a minor version.',
    body: plan(steps('v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-backwards',
    about: 'A step below the previous one.',
    body: plan(steps('v1.34.2', 'v1.34.1', 'v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-short',
    about: 'The last step is not the requested version.',
    body: plan(steps('v1.34.2')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-workers',
    about: 'A version of the workers that is no step of the control plane.',
    body: plan(steps('v1.34.2', 'v1.35.0'), steps('v1.34.9', 'v1.35.0')),
  },
  {
    hook: GenerateUpgradePlan,
    name: 'plan-version',
    about: 'A version that is not a semantic version.',
    body: plan(steps('latest')),
  },
  // Patches
  {
    hook: GeneratePatches,
    name: 'patch-list',
    about: 'The patch document itself: it must be a string in base64.',
    body: item({ patchType: 'JSONPatch', patch: [{ op: 'remove', path: delayPath }] }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-object',
    about: 'The patch document itself: it must be a string in base64.',
    body: item({ patchType: 'JSONMergePatch', patch: { spec: {} } }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-plain',
    about: 'The patch document itself: it must be a string in base64.',
    body: item({ patchType: 'JSONPatch', patch: '[]' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-unpadded',
    about: 'base64 without padding.',
    body: item({ patchType: 'JSONPatch', patch: base64([]).replace(/=+$/, '') }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-url-safe',
    about: 'base64 with - and _: the alphabet must be the standard one, with + and /.',
    body: item({ patchType: 'JSONPatch', patch: 'W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvYSIsInZhbHVlIjoi_--_In1d' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-uid',
    about: 'A uid that no item of the request has.',
    body: {
      ...success,
      items: [{ uid: 'LocalMachineTemplate', patchType: 'JSONPatch', patch: base64([{ op: 'remove', path: delayPath }]) }],
    },
  },
  {
    hook: GeneratePatches,
    name: 'patch-no-type',
    about: 'A patch without patchType.',
    body: item({ patch: base64([{ op: 'remove', path: delayPath }]) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-type',
    about: 'A patchType other than JSONPatch and JSONMergePatch.',
    body: item({ patchType: 'application/json-patch+json', patch: base64([{ op: 'remove', path: delayPath }]) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-garbage',
    about: 'A patch document that is not JSON.',
    body: item({ patchType: 'JSONPatch', patch: Buffer.from('- op: remove').toString('base64') }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-one-operation',
    about: 'A JSON patch that is not a list of operations.',
    body: item({ patchType: 'JSONPatch', patch: base64({ op: 'remove', path: delayPath }) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-merge-list',
    about: 'A JSON merge patch that is not an object.',
    body: item({ patchType: 'JSONMergePatch', patch: base64([{ op: 'remove', path: delayPath }]) }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-remove',
    about: 'A remove operation whose path does not exist.',
    body: jsonPatch({ op: 'remove', path: '/spec/template/spec/size' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-replace',
    about: 'A replace operation whose path does not exist.',
    body: jsonPatch({ op: 'replace', path: '/spec/template/spec/size', value: 'big' }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-add',
    about: 'An add operation whose parent does not exist.',
    body: jsonPatch({ op: 'add', path: '/spec/template/spec/network/mtu', value: 1500 }),
  },
  {
    hook: GeneratePatches,
    name: 'patch-test',
    about: 'A failed test operation.',
    body: jsonPatch({ op: 'test', path: delayPath, value: '9s' }),
  },
  // Variables
  {
    hook: DiscoverVariables,
    name: 'variables-map',
    about: 'A map by name instead of a list.',
    body: { ...success, variables: { region: { schema: {} } } },
  },
  {
    hook: DiscoverVariables,
    name: 'variables-name',
    about: 'A name with a dot.',
    body: variable('my.region', { type: 'string' }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-builtin',
    about: 'The reserved name builtin.',
    body: variable('builtin', { type: 'object' }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-type',
    about: 'A schema without a type.',
    body: variable('region', { enum: ['eu1'] }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-default',
    about: 'A default that its schema does not allow.',
    body: variable('region', { type: 'string', enum: ['eu1'], default: 'us1' }),
  },
  {
    hook: DiscoverVariables,
    name: 'variables-items',
    about: 'A schema of type array without the field items.',
    body: variable('regions', { type: 'array' }),
  },
  // Other hooks
  {
    hook: ValidateTopology,
    name: 'validate-failure',
    about: 'A correct failure: it rejects the topology, and the message is the reason.',
    body: { status: 'Failure', message: 'machines run in the EU only' },
  },
  {
    hook: CanUpdateMachine,
    name: 'in-place-no-type',
    about: 'A patch without patchType.',
    body: { ...success, machinePatch: { patch: base64([]) } },
  },
  {
    hook: CanUpdateMachine,
    name: 'in-place-replace',
    about: 'A replace operation whose path the current Machine does not have.',
    body: {
      ...success,
      machinePatch: { patchType: 'JSONPatch', patch: base64([{ op: 'replace', path: '/spec/failureDomain', value: 'a' }]) },
    },
  },
  {
    hook: CanUpdateMachineSet,
    name: 'in-place-depth',
    about: 'A path of a Machine: in a MachineSet the spec of Machines is at /spec/template/spec.',
    body: { ...success, machineSetPatch: toVersion('/spec/version') },
  },
  {
    hook: UpdateMachine,
    name: 'update-failure',
    about: 'A correct failure: core retries with growing delays.',
    body: { status: 'Failure', message: 'kubelet does not start' },
  },
]
