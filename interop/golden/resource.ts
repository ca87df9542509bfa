/**
 * Scenarios of DeviceClasses, ResourceClaims, ResourceClaimTemplates and ResourceSlices: requests to which
 * `interop/recordings/record-golden.ts` records the responses of a real kube-apiserver.
 */
import { apply, columnsOf, get, jsonPatch, mergePatch, post, put, remove, type Scenario, type Step, variants } from './step.ts'

const base = '/apis/resource.k8s.io/v1'
const objectOf = (kind: string, more: object, name = 'min') => ({
  apiVersion: 'resource.k8s.io/v1',
  kind,
  metadata: { name },
  ...more,
})
const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))
/** One character longer than a DNS label may be. */
const longText = 'x'.repeat(64)
const invalidName = 'Not Valid'
const uid = '0f3b7c52-6f0a-4d7b-8a53-2c1d4a6e9b10'

const classes = `${base}/deviceclasses`
const deviceClass = objectOf('DeviceClass', { spec: {} })
const select = (expression: string) => ({ cel: { expression } })
const selectors = (...expressions: string[]) => ({ spec: { selectors: expressions.map(select) } })
const opaque = (more: object = {}) => ({ opaque: { driver: 'gpu.example.com', parameters: { kind: 'Config' }, ...more } })

/** Returns an expression whose cost grows exponentially with its depth. */
const nested = (depth: number): string =>
  depth === 0 ? 'true' : `device.attributes["gpu.example.com"].all(a${depth}, ${nested(depth - 1)})`

const claims = `${base}/namespaces/default/resourceclaims`
const devices = (more: object) => ({ spec: { devices: more } })
const exactly = (more: object = {}, name = 'gpu') => ({ name, exactly: { deviceClassName: 'gpu.example.com', ...more } })
const first = (...more: object[]) => ({
  name: 'gpu',
  firstAvailable: more.map((one, index) => ({ name: `sub-${index}`, deviceClassName: 'gpu.example.com', ...one })),
})
const requests = (...more: object[]) => devices({ requests: more })
const claim = objectOf('ResourceClaim', requests(exactly()))
const tolerating = (toleration: object) => requests(exactly({ tolerations: [toleration] }))

/** Changes that make the spec of a ResourceClaim or ResourceClaimTemplate invalid. */
const badDevices: readonly object[] = [
  requests({ name: 'gpu' }),
  requests({ ...exactly(), ...first({}) }),
  requests(exactly({}, '')),
  requests(exactly({}, invalidName)),
  requests(exactly({}, longText)),
  requests(exactly(), exactly()),
  requests(...times(33, (index) => exactly({}, `r-${index}`))),
  requests(exactly({ deviceClassName: '' })),
  requests(exactly({ deviceClassName: invalidName })),
  requests(exactly({ allocationMode: 'Some' })),
  requests(exactly({ allocationMode: 'All', count: 2 })),
  requests(exactly({ count: -1 })),
  requests(exactly({ selectors: [{}] })),
  requests(exactly({ selectors: [select('')] })),
  requests(exactly({ selectors: [select('device.nothing')] })),
  requests(exactly({ selectors: times(33, () => select('true')) })),
  requests(exactly({ adminAccess: true })),
  requests(first({ name: invalidName })),
  requests(first({ deviceClassName: '' })),
  requests(first({ deviceClassName: invalidName })),
  requests(first({ allocationMode: 'Some' })),
  requests(first({ allocationMode: 'All', count: 1 })),
  requests(first({ selectors: [select('1')] })),
  requests(first({ name: 'same' }, { name: 'same' })),
  requests(first({ tolerations: [{ key: invalidName }] })),
  requests(first(...times(9, () => ({})))),
  tolerating({ key: invalidName, operator: 'Exists' }),
  tolerating({ key: 'a', operator: 'Exists', value: 'b' }),
  tolerating({ key: 'a', operator: 'Equal', value: invalidName }),
  tolerating({ key: 'a', operator: 'Like' }),
  tolerating({ key: 'a', effect: 'Sometimes' }),
  devices({ requests: [exactly()], constraints: [{}] }),
  devices({ requests: [exactly()], constraints: [{ requests: ['gpu'], matchAttribute: 'model' }] }),
  devices({ requests: [exactly()], constraints: [{ matchAttribute: 'Not Valid/model' }] }),
  devices({ requests: [exactly()], constraints: [{ matchAttribute: `example.com/${longText}` }] }),
  devices({ requests: [exactly()], constraints: [{ matchAttribute: 'example.com/not-valid' }] }),
  devices({ requests: [exactly()], constraints: [{ matchAttribute: '/model' }] }),
  devices({ requests: [exactly()], constraints: [{ matchAttribute: 'example.com/' }] }),
  devices({ requests: [exactly()], constraints: [{ distinctAttribute: 'model' }] }),
  devices({ requests: [exactly()], constraints: [{ requests: ['gpu', 'gpu'], matchAttribute: 'example.com/model' }] }),
  devices({ requests: [exactly()], constraints: [{ requests: ['other'], matchAttribute: 'example.com/model' }] }),
  devices({ requests: [first({})], constraints: [{ requests: ['gpu/other'], matchAttribute: 'example.com/model' }] }),
  devices({ requests: [first({})], constraints: [{ requests: ['gpu/a/b'], matchAttribute: 'example.com/model' }] }),
  devices({ requests: [exactly()], constraints: [{ requests: [invalidName], matchAttribute: 'example.com/model' }] }),
  devices({ requests: [exactly()], constraints: times(33, () => ({ matchAttribute: 'example.com/model' })) }),
  devices({ requests: [exactly()], config: [{}] }),
  devices({ requests: [exactly()], config: [{ requests: ['other'], ...opaque() }] }),
  devices({ requests: [exactly()], config: [{ requests: ['gpu', 'gpu'], ...opaque() }] }),
  devices({ requests: [exactly()], config: [opaque({ driver: '' })] }),
  devices({ requests: [exactly()], config: [opaque({ driver: invalidName })] }),
  devices({ requests: [exactly()], config: [opaque({ driver: longText })] }),
  devices({ requests: [exactly()], config: [opaque({ parameters: null })] }),
  devices({ requests: [exactly()], config: [opaque({ parameters: 'text' })] }),
  devices({ requests: [exactly()], config: [opaque({ parameters: { text: 'x'.repeat(10_240) } })] }),
  devices({ requests: [exactly()], config: times(33, () => opaque()) }),
]
const fullDevices = {
  requests: [
    exactly({
      selectors: [select('device.driver == "gpu.example.com"')],
      tolerations: [{ key: 'a', value: 'b', effect: 'NoExecute', tolerationSeconds: 30 }, { operator: 'Exists' }],
      capacity: { requests: { memory: '1Gi' } },
    }),
    exactly({ allocationMode: 'All' }, 'all'),
    { ...first({}, { count: 2, tolerations: [{ key: 'c' }] }, { allocationMode: 'All' }), name: 'either' },
  ],
  constraints: [
    { requests: ['gpu', 'either'], matchAttribute: 'gpu.example.com/model' },
    { requests: ['either/sub-1'], distinctAttribute: 'gpu.example.com/model' },
  ],
  config: [{ requests: ['gpu', 'either/sub-0'], ...opaque() }, opaque({ driver: 'GPU.example.com' })],
}

const device = { driver: 'gpu.example.com', pool: 'node-1/pool', device: 'gpu-0' }
const result = (more: object = {}) => ({ request: 'gpu', ...device, ...more })
const allocation = (...results: object[]) => ({ devices: { results } })
const allocated = (more: object = {}) => ({ allocation: allocation(result()), ...more })
const consumer = (more: object = {}) => ({ resource: 'pods', name: 'p', uid: 'u-1', ...more })
const condition = (more: object = {}) => ({
  type: 'Ready',
  status: 'True',
  reason: 'Fine',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  ...more,
})
const patchStatus = (name: string, status: object): Step => mergePatch(`${claims}/${name}/status`, { status })
const badStatuses = (...statuses: object[]): Step[] => statuses.map((status) => patchStatus('min', status))
const badResult = (more: object) => ({ allocation: allocation(result(more)) })
const badDevice = (more: object) => ({ ...allocated(), devices: [{ ...device, ...more }] })

const robot = 'system:serviceaccount:default:robot'

/** Returns steps that grant the permissions of a rule to the user `robot`. */
const grant = (name: string, rule: object): Step[] => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const creation = (path: string, body: object): Step => ({ prepare: { method: 'POST', path: `${rbac}/${path}`, body } })
  return [
    creation('clusterroles', { metadata: { name }, rules: [{ apiGroups: ['resource.k8s.io'], ...rule }] }),
    creation('clusterrolebindings', {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: robot }],
    }),
    // Long enough for all caches to receive both objects.
    { sleepMs: 500 },
  ]
}
const asRobot = (status: object, node?: string): Step => ({
  request: {
    method: 'PATCH',
    path: `${claims}/shared/status`,
    headers: {
      'impersonate-user': robot,
      ...(node === undefined ? {} : { 'impersonate-extra-authentication.kubernetes.io%2Fnode-name': node }),
    },
    body: { status },
  },
})

const templates = `${base}/namespaces/default/resourceclaimtemplates`
const template = objectOf('ResourceClaimTemplate', { spec: { spec: requests(exactly()).spec } })

const slices = `${base}/resourceslices`
const pool = { name: 'pool', generation: 1, resourceSliceCount: 1 }
const sliceSpec = { driver: 'gpu.example.com', nodeName: 'node-1', pool, devices: [{ name: 'gpu-0' }] }
const slice = objectOf('ResourceSlice', { spec: sliceSpec })
const gpu = (more: object) => ({ spec: { devices: [{ name: 'gpu-0', ...more }] } })
const attribute = (value: object, name = 'model') => gpu({ attributes: { [name]: value } })
const capacity = (requestPolicy: object, value = '10', allowMultipleAllocations = true) =>
  gpu({ allowMultipleAllocations, capacity: { memory: { value, requestPolicy } } })
const counters = (count: number) => Object.fromEntries(times(count, (index) => [`c-${index}`, { value: '1' }]))
const onlyCounters = (...sharedCounters: object[]) => ({ spec: { devices: null, sharedCounters } })
const perDevice = (more: object) => ({
  spec: { nodeName: null, perDeviceNodeSelection: true, devices: [{ name: 'gpu-0', ...more }] },
})
const nodes = (...values: string[]) => ({
  nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values }] }],
})
const manyEntries = (more: object) => Object.fromEntries(times(33, (index) => [`a${index}`, more]))

export const scenarios: readonly Scenario[] = [
  {
    name: 'device classes',
    steps: [
      post(classes, deviceClass),
      post(
        classes,
        objectOf(
          'DeviceClass',
          {
            spec: {
              selectors: [select('device.driver == "gpu.example.com"'), select('device.attributes["gpu.example.com"].ready')],
              config: [opaque()],
              extendedResourceName: 'example.com/gpu',
            },
          },
          'gpu.example.com',
        ),
      ),
      ...variants(classes, deviceClass, [
        { metadata: { name: invalidName } },
        { metadata: { name: 'x'.repeat(254) } },
        { spec: { selectors: [{}] } },
        { spec: { selectors: times(33, () => select('true')) } },
        { spec: { config: [{}] } },
        { spec: { config: [opaque({ driver: '' })] } },
        { spec: { config: [opaque({ driver: invalidName })] } },
        { spec: { config: [opaque({ parameters: ['list'] })] } },
        { spec: { config: times(33, () => opaque()) } },
        { spec: { extendedResourceName: 'cpu' } },
        { spec: { extendedResourceName: 'requests.example.com/gpu' } },
        { spec: { extendedResourceName: 'Not Valid/gpu' } },
      ]),
      mergePatch(`${classes}/min`, { metadata: { labels: { a: 'b' } } }),
      mergePatch(`${classes}/min`, { spec: { extendedResourceName: 'example.com/other' } }),
      mergePatch(`${classes}/min`, { spec: { selectors: [select('nonsense')] } }),
      apply(`${classes}/applied`, objectOf('DeviceClass', { spec: { selectors: [select('true')] } }, 'applied')),
      put(`${classes}/min`, objectOf('DeviceClass', { spec: { config: [] } })),
      columnsOf(classes),
      remove(`${classes}/min`),
      get(classes),
    ],
  },
  {
    name: 'selectors of devices',
    steps: variants(
      classes,
      deviceClass,
      [
        '',
        'true',
        'device.driver == "a" && device.allowMultipleAllocations',
        'device.attributes["gpu.example.com"].model == "a"',
        'device.attributes["gpu.example.com"].memory > 10',
        'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.0.0"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 0',
        'device.capacity["gpu.example.com"].memory == "1Gi"',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.ready && gpu.model == "a")',
        'cel.bind(gpu.x, device.attributes["gpu.example.com"], true)',
        '"gpu.example.com" in device.attributes && "model" in device.attributes["gpu.example.com"]',
        'has(device.attributes["gpu.example.com"].model)',
        'device.attributes.all(domain, domain.startsWith("gpu"))',
        'device.attributes["gpu.example.com"].exists(name, name == "model")',
        'device.attributes["gpu.example.com"].ready',
        'device.attributes["gpu.example.com"]',
        'device.attributes',
        'device.capacity',
        'device.capacity["gpu.example.com"].memory',
        'device.driver',
        'device',
        'dyn(true)',
        '1 + 1',
        'device.model == "a"',
        'device.driver + 1 == 2',
        'device.attributes["a"]["b"] + 1 == 2',
        'device.driver ==',
        'devices.driver == "a"',
        'device.attributes[1].a',
        'device.driver.matches("^a+$")',
        'device.driver.matches("(")',
        'self.a',
        `"${'x'.repeat(10_240)}" == device.driver`,
        nested(3),
        nested(4),
        'device.attributes["a"].text.matches("a.*b.*c")',
        'device.attributes["a"].all(n, device.attributes["a"].all(m, device.attributes["a"][n].matches(device.attributes["a"][m])))',
        'device.attributes["a"].includes("b")',
      ].map((expression) => selectors(expression)),
    ),
  },
  {
    name: 'claims',
    steps: [
      post(claims, claim),
      post(claims, objectOf('ResourceClaim', { ...devices(fullDevices), status: allocated() }, 'max')),
      post(claims, objectOf('ResourceClaim', { spec: {} }, 'none')),
      ...variants(claims, claim, [{ metadata: { name: invalidName } }, ...badDevices]),
      mergePatch(`${claims}/min`, { metadata: { labels: { a: 'b' } } }),
      mergePatch(`${claims}/min`, requests(exactly({ count: 2 }))),
      mergePatch(`${claims}/max`, { spec: { devices: { config: null } } }),
      mergePatch(`${claims}/max`, requests(exactly({ selectors: [select('device.driver < "b" && true')] }))),
      mergePatch(`${claims}/min`, { status: allocated() }),
      apply(`${claims}/applied`, objectOf('ResourceClaim', requests(exactly()), 'applied')),
      columnsOf(claims),
      get(`${claims}?fieldSelector=metadata.name%3Dmin`),
      get(`${claims}?fieldSelector=spec.devices%3Dmin`),
    ],
  },
  {
    name: 'statuses of claims',
    steps: [
      ...badStatuses(
        { reservedFor: [consumer()] },
        { devices: [device] },
        badResult({ request: 'other' }),
        badResult({ request: '' }),
        badResult({ driver: '' }),
        badResult({ driver: invalidName }),
        badResult({ pool: '' }),
        badResult({ pool: 'a//b' }),
        badResult({ pool: `${'x'.repeat(250)}/${'y'.repeat(10)}` }),
        badResult({ device: invalidName }),
        badResult({ device: '' }),
        badResult({ shareID: 'text' }),
        badResult({ shareID: uid.toUpperCase() }),
        badResult({ shareID: `{${uid}}` }),
        badResult({ shareID: uid.slice(0, -1) }),
        badResult({ bindingConditions: ['a'] }),
        badResult({ bindingFailureConditions: ['a'] }),
        badResult({ bindingConditions: ['a', 'a'], bindingFailureConditions: ['a', 'b', 'b'] }),
        badResult({ bindingConditions: [invalidName], bindingFailureConditions: [''] }),
        badResult({ bindingConditions: ['a', 'b', 'c', 'd', 'e'], bindingFailureConditions: ['f'] }),
        badResult({ adminAccess: true }),
        { allocation: allocation(...times(33, () => result())) },
        { allocation: { ...allocation(result()), nodeSelector: {} } },
        { allocation: { ...allocation(result()), nodeSelector: nodes('a', 'b') } },
        { allocation: { devices: { config: [{ source: 'FromClass' }] } } },
        { allocation: { devices: { config: [{ source: '', ...opaque() }] } } },
        { allocation: { devices: { config: [{ source: 'FromNowhere', ...opaque() }] } } },
        { allocation: { devices: { config: [{ source: 'FromClaim', requests: ['other'], ...opaque() }] } } },
        { allocation: { devices: { config: times(65, () => ({ source: 'FromClaim', ...opaque() })) } } },
        { ...allocated(), reservedFor: [{}] },
        { ...allocated(), reservedFor: [consumer(), consumer({ name: 'q' })] },
        { ...allocated(), reservedFor: times(257, (index) => consumer({ uid: `u-${index}` })) },
        badDevice({ device: 'gpu-1' }),
        badDevice({ driver: '' }),
        badDevice({ pool: invalidName }),
        badDevice({ device: invalidName }),
        badDevice({ shareID: 'text' }),
        { ...allocated(), devices: [device, device] },
        badDevice({ conditions: [condition({ type: invalidName })] }),
        badDevice({ conditions: [condition({ status: 'Maybe' })] }),
        badDevice({ conditions: [condition({ observedGeneration: -1 })] }),
        badDevice({ conditions: [condition({ lastTransitionTime: null })] }),
        badDevice({ conditions: [condition({ reason: '' })] }),
        badDevice({ conditions: [condition({ reason: invalidName })] }),
        badDevice({ conditions: [condition({ reason: 'x'.repeat(1025) })] }),
        badDevice({ conditions: [condition({ message: 'x'.repeat(32_769) })] }),
        badDevice({ conditions: [condition(), condition()] }),
        badDevice({ conditions: times(9, (index) => condition({ type: `Type${index}` })) }),
        badDevice({ data: 'text' }),
        badDevice({ data: { text: 'x'.repeat(10_240) } }),
        badDevice({ networkData: { interfaceName: 'x'.repeat(257) } }),
        badDevice({ networkData: { hardwareAddress: 'x'.repeat(129) } }),
        badDevice({ networkData: { ips: ['10.0.0.1'] } }),
        badDevice({ networkData: { ips: ['10.0.0.01/8'] } }),
        badDevice({ networkData: { ips: ['2001:DB8::1/64'] } }),
        badDevice({ networkData: { ips: ['::ffff:10.0.0.1/120'] } }),
        badDevice({ networkData: { ips: ['10.0.0.1/24', '10.0.0.1/24'] } }),
        badDevice({ networkData: { ips: times(17, (index) => `10.0.0.${index}/24`) } }),
      ),
      patchStatus('min', {
        ...allocated(),
        allocation: {
          devices: {
            results: [result({ tolerations: [{ key: 'a' }] }), result({ device: 'gpu-1', shareID: uid })],
            config: [{ source: 'FromClass', requests: ['gpu'], ...opaque() }],
          },
          nodeSelector: nodes('node-1'),
          allocationTimestamp: '2026-01-01T00:00:00Z',
        },
        reservedFor: [consumer(), consumer({ uid: 'u-2', name: 'q' })],
        devices: [
          { ...device, conditions: [condition()], data: { a: 1 }, networkData: { interfaceName: 'eth0', ips: ['10.0.0.1/24'] } },
          { ...device, device: 'gpu-1', shareID: uid },
        ],
      }),
      columnsOf(claims),
      patchStatus('min', { allocation: allocation(result()) }),
      patchStatus('min', { reservedFor: [consumer({ uid: 'u-3' })] }),
      mergePatch(`${claims}/min/status`, { metadata: { labels: { c: 'd' } }, spec: { devices: { requests: [] } } }),
      patchStatus('min', { allocation: null, reservedFor: null }),
      patchStatus('min', { ...allocated(), devices: [device] }),
      apply(`${claims}/min/status`, objectOf('ResourceClaim', { status: { reservedFor: [consumer()] } })),
      mergePatch(`${claims}/min`, { metadata: { finalizers: ['example.com/hold'] } }),
      remove(`${claims}/min`),
      patchStatus('min', { reservedFor: [consumer(), consumer({ uid: 'u-4' })] }),
      columnsOf(claims),
      mergePatch(`${claims}/min`, { metadata: { finalizers: null } }),
    ],
  },
  {
    name: 'claims with admin access',
    steps: [
      {
        prepare: {
          method: 'POST',
          path: '/api/v1/namespaces',
          body: { metadata: { name: 'admin', labels: { 'resource.kubernetes.io/admin-access': 'true' } } },
        },
      },
      post(`${base}/namespaces/admin/resourceclaims`, objectOf('ResourceClaim', requests(exactly({ adminAccess: true })))),
      mergePatch(`${base}/namespaces/admin/resourceclaims/min/status`, {
        status: { allocation: allocation(result({ adminAccess: true })) },
      }),
      post(
        `${base}/namespaces/admin/resourceclaimtemplates`,
        objectOf('ResourceClaimTemplate', { spec: requests(exactly({ adminAccess: true })) }),
      ),
      post(`${base}/namespaces/nowhere/resourceclaims`, objectOf('ResourceClaim', requests(exactly({ adminAccess: true })))),
    ],
  },
  {
    name: 'permissions for statuses of claims',
    steps: [
      { prepare: { method: 'POST', path: claims, body: objectOf('ResourceClaim', requests(exactly()), 'shared') } },
      ...grant('status', { resources: ['resourceclaims/status'], verbs: ['patch'] }),
      asRobot({ ...allocated(), devices: [device] }),
      ...grant('binding', { resources: ['resourceclaims/binding'], verbs: ['patch'] }),
      asRobot({ allocation: { ...allocation(result()), nodeSelector: nodes('node-1') }, reservedFor: [consumer()] }),
      asRobot({ devices: [device] }),
      asRobot({ devices: [device] }, 'node-1'),
      ...grant('near', { resources: ['resourceclaims/driver'], verbs: ['associated-node:patch'] }),
      asRobot({ devices: [device] }, 'node-2'),
      asRobot({ devices: [device] }, 'node-1'),
      ...grant('far', {
        resources: ['resourceclaims/driver'],
        verbs: ['arbitrary-node:patch'],
        resourceNames: ['gpu.example.com'],
      }),
      asRobot({ devices: [{ ...device, data: { a: 1 } }] }),
    ],
  },
  {
    name: 'templates of claims',
    steps: [
      post(templates, template),
      post(
        templates,
        objectOf(
          'ResourceClaimTemplate',
          { spec: { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } }, spec: { devices: fullDevices } } },
          'max',
        ),
      ),
      ...variants(templates, template, [
        { metadata: { name: invalidName } },
        { spec: { metadata: { labels: { a: invalidName } } } },
        { spec: { metadata: { annotations: { 'not valid': '' } } } },
        // Only a sample: the scenario `claims` sends all of `badDevices`.
        ...[0, 4, 9, 16, 33, 45].map((index) => ({ spec: { spec: (badDevices[index] as { spec: object }).spec } })),
      ]),
      mergePatch(`${templates}/min`, { metadata: { labels: { a: 'b' } } }),
      mergePatch(`${templates}/min`, { spec: { spec: requests(exactly({ count: 2 })).spec } }),
      mergePatch(`${templates}/min`, { spec: { spec: requests(exactly({ count: -2 })).spec } }),
      mergePatch(`${templates}/max`, { spec: { metadata: { labels: { b: 'a' } } } }),
      columnsOf(templates),
      remove(`${templates}/min`),
    ],
  },
  {
    name: 'slices',
    steps: [
      post(slices, slice),
      post(
        slices,
        objectOf(
          'ResourceSlice',
          {
            spec: {
              driver: 'GPU.example.com',
              pool: { ...pool, name: 'a/b' },
              nodeSelector: nodes('node-1'),
              devices: [
                {
                  name: 'gpu-0',
                  attributes: {
                    model: { string: 'a' },
                    'example.com/size': { int: 1 },
                    ready: { bool: true },
                    firmware: { version: '1.2.3-alpha.1+build' },
                  },
                  capacity: { memory: { value: '1Gi' } },
                  taints: [{ key: 'a', value: 'b', effect: 'NoSchedule', timeAdded: '2026-01-01T00:00:00Z' }],
                  consumesCounters: [{ counterSet: 'set', counters: { memory: { value: '1' } } }],
                  bindsToNode: true,
                  bindingConditions: ['a'],
                  bindingFailureConditions: ['b'],
                },
                {
                  name: 'gpu-1',
                  allowMultipleAllocations: true,
                  capacity: {
                    memory: { value: '10', requestPolicy: { default: '1', validValues: ['1', '2', '10'] } },
                    'example.com/cores': {
                      value: '10',
                      requestPolicy: { default: '2', validRange: { min: '2', max: '8', step: '2' } },
                    },
                  },
                },
              ],
            },
          },
          'max',
        ),
      ),
      post(
        slices,
        objectOf(
          'ResourceSlice',
          { spec: { driver: 'gpu.example.com', allNodes: true, pool, sharedCounters: [{ name: 'set', counters: counters(2) }] } },
          'counters',
        ),
      ),
      post(
        slices,
        objectOf(
          'ResourceSlice',
          {
            spec: {
              driver: 'gpu.example.com',
              perDeviceNodeSelection: true,
              pool,
              devices: [
                { name: 'a', nodeName: 'node-1' },
                { name: 'b', allNodes: true },
                { name: 'c', nodeSelector: nodes('node-1') },
              ],
            },
          },
          'per-device',
        ),
      ),
      ...variants(slices, slice, [
        { metadata: { name: invalidName } },
        { spec: { driver: null } },
        { spec: { driver: invalidName } },
        { spec: { driver: longText } },
        { spec: { pool: null } },
        { spec: { pool: { name: '' } } },
        { spec: { pool: { name: 'a//b' } } },
        { spec: { pool: { name: 'x'.repeat(254) } } },
        { spec: { pool: { resourceSliceCount: 0 } } },
        { spec: { pool: { generation: -1 } } },
        { spec: { nodeName: null } },
        { spec: { nodeName: '' } },
        { spec: { nodeName: invalidName } },
        { spec: { allNodes: true } },
        { spec: { allNodes: false } },
        { spec: { perDeviceNodeSelection: false } },
        { spec: { nodeName: null, nodeSelector: {} } },
        { spec: { nodeName: null, nodeSelector: { nodeSelectorTerms: [{}, {}] } } },
        { spec: { nodeName: null, nodeSelector: nodes(invalidName) } },
        { spec: { sharedCounters: [{ name: 'a', counters: counters(1) }] } },
        onlyCounters({ name: '', counters: counters(1) }),
        onlyCounters({ name: invalidName, counters: counters(1) }),
        onlyCounters({ name: 'a' }),
        onlyCounters({ name: 'a', counters: { [invalidName]: { value: '1' } } }),
        onlyCounters({ name: 'a', counters: counters(33) }),
        onlyCounters({ name: 'a', counters: counters(1) }, { name: 'a', counters: counters(1) }),
        onlyCounters(...times(9, (index) => ({ name: `s-${index}`, counters: counters(1) }))),
        { spec: { devices: times(129, (index) => ({ name: `d-${index}` })) } },
        { spec: { devices: times(65, (index) => ({ name: `d-${index}`, taints: [{ key: 'a', effect: 'None' }] })) } },
        {
          spec: {
            devices: times(65, (index) => ({
              name: `d-${index}`,
              consumesCounters: [{ counterSet: 'a', counters: counters(1) }],
            })),
          },
        },
        { spec: { devices: [{ name: 'a' }, { name: 'a' }] } },
        gpu({ name: invalidName }),
        gpu({ name: '' }),
        gpu({ attributes: manyEntries({ int: 1 }) }),
        attribute({}),
        attribute({ int: 1, bool: true }),
        attribute({ ints: [1, 2] }),
        attribute({ string: longText + 'y' }),
        attribute({ version: '1.2' }),
        attribute({ version: `1.2.3-${longText}` }),
        attribute({ int: 1 }, 'not-valid'),
        attribute({ int: 1 }, ''),
        attribute({ int: 1 }, '/a'),
        attribute({ int: 1 }, 'example.com/'),
        attribute({ int: 1 }, 'Not Valid/a'),
        attribute({ int: 1 }, 'a/b/c'),
        attribute({ int: 1 }, 'x'.repeat(33)),
        attribute({}, 'x'.repeat(120)),
        gpu({ capacity: { 'not-valid': { value: '1' } } }),
        capacity({ default: '1' }, '10', false),
        capacity({ validValues: ['1'] }),
        capacity({ default: '3', validValues: ['2', '1', '1', '20'] }),
        capacity({ default: '1', validValues: times(11, (index) => String(index + 1)) }, '20'),
        capacity({ default: '1', validValues: ['1'], validRange: { min: '1' } }),
        capacity({ validRange: { min: '1' } }),
        capacity({ default: '1', validRange: {} }),
        capacity({ default: '1', validRange: { min: '20' } }),
        capacity({ default: '9', validRange: { min: '5', max: '3' } }),
        capacity({ default: '5', validRange: { min: '2', max: '30' } }),
        capacity({ default: '5', validRange: { min: '2', max: '7', step: '2' } }),
        capacity({ default: '2', validRange: { min: '2', step: '9' } }),
        gpu({ taints: [{ key: '', effect: 'NoExecute' }] }),
        gpu({ taints: [{ key: invalidName, value: invalidName, effect: 'NoExecute' }] }),
        gpu({ taints: [{ key: 'a' }] }),
        gpu({ taints: [{ key: 'a', effect: 'Sometimes' }] }),
        gpu({ taints: times(17, (index) => ({ key: `t-${index}`, effect: 'None' })) }),
        gpu({ consumesCounters: [{ counters: counters(1) }] }),
        gpu({ consumesCounters: [{ counterSet: invalidName, counters: counters(1) }] }),
        gpu({ consumesCounters: [{ counterSet: 'a' }] }),
        gpu({ consumesCounters: [{ counterSet: 'a', counters: { [invalidName]: { value: '1' } } }] }),
        gpu({ consumesCounters: [{ counterSet: 'a', counters: counters(33) }] }),
        gpu({ consumesCounters: times(2, () => ({ counterSet: 'a', counters: counters(1) })) }),
        gpu({ consumesCounters: times(3, (index) => ({ counterSet: `s-${index}`, counters: counters(1) })) }),
        gpu({ nodeName: 'node-1' }),
        gpu({ bindingConditions: ['a'] }),
        gpu({ bindingFailureConditions: ['a'] }),
        gpu({ bindingConditions: ['a'], bindingFailureConditions: ['a'] }),
        gpu({ bindingConditions: ['a', 'a', 'b', 'c', 'd'], bindingFailureConditions: ['e'] }),
        gpu({ nodeAllocatableResourceMappings: { cpu: {} } }),
        perDevice({}),
        perDevice({ nodeName: '' }),
        perDevice({ nodeName: invalidName }),
        perDevice({ allNodes: false }),
        perDevice({ nodeSelector: {} }),
        perDevice({ nodeName: 'node-1', allNodes: true }),
      ]),
      mergePatch(`${slices}/min`, { metadata: { labels: { a: 'b' } } }),
      mergePatch(`${slices}/min`, { spec: { pool: { generation: 2 } } }),
      mergePatch(`${slices}/min`, { spec: { driver: 'other.example.com', nodeName: 'node-2', pool: { name: 'other' } } }),
      mergePatch(`${slices}/min`, gpu({ taints: [{ key: 'a', effect: 'NoExecute' }] })),
      jsonPatch(`${slices}/max`, [{ op: 'replace', path: '/spec/devices/0/taints/0/effect', value: 'None' }]),
      apply(`${slices}/applied`, {
        ...slice,
        metadata: { name: 'applied' },
        spec: { ...sliceSpec, devices: [{ name: 'gpu-0', taints: [{ key: 'a', effect: 'None' }] }] },
      }),
      columnsOf(slices),
      get(`${slices}?fieldSelector=spec.nodeName%3Dnode-1`),
      get(`${slices}?fieldSelector=spec.driver%3DGPU.example.com`),
      get(`${slices}?fieldSelector=spec.pool.name%3Dpool`),
      remove(`${slices}/min`),
    ],
  },
  { name: 'discovery', steps: [get(base), get('/apis/resource.k8s.io')] },
]
