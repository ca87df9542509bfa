/** Generates hostile inputs from tables of shapes: objects, other bodies, patches and queries, each in several sizes. */

export interface HostileInput {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** Content type of the body. Absent for requests without a body. */
  readonly type?: string
  readonly accept?: string
  readonly body?: string
}

const namespace = '/api/v1/namespaces/default'
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))
const nested = (depth: number, open: string, close: string): string => open.repeat(depth) + close.repeat(depth)

type Make = (size: number) => unknown

const pod =
  (spec: (size: number) => object): Make =>
  (size) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'hostile' },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec(size) },
  })
const container =
  (fields: (size: number) => object): Make =>
  (size) =>
    pod(() => ({ containers: [{ name: 'c', image: 'i', ...fields(size) }] }))(size)
const configMap =
  (metadata: (size: number) => object, otherFields: (size: number) => object = () => ({})): Make =>
  (size) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hostile', ...metadata(size) }, ...otherFields(size) })
const service =
  (spec: (size: number) => object): Make =>
  (size) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'hostile' }, spec: { ports: [{ port: 1 }], ...spec(size) } })

/** Objects with long lists, maps and texts: shape, path of the request, and a function that creates an object of a size. */
const objects: readonly (readonly [shape: string, path: string, make: Make])[] = [
  ['empty containers', `${namespace}/pods`, pod((n) => ({ containers: many(n, () => ({})) }))],
  ['equal container ports', `${namespace}/pods`, container((n) => ({ ports: many(n, () => ({ containerPort: 80 })) }))],
  [
    'different container ports',
    `${namespace}/pods`,
    container((n) => ({ ports: many(n, (i) => ({ containerPort: 1 + (i % 65_535) })) })),
  ],
  [
    'host ports',
    `${namespace}/pods`,
    container((n) => ({ ports: many(n, (i) => ({ containerPort: 80, hostPort: 1 + (i % 65_535) })) })),
  ],
  ['equal variables', `${namespace}/pods`, container((n) => ({ env: many(n, () => ({ name: 'A', value: '$(A)' })) }))],
  ['different variables', `${namespace}/pods`, container((n) => ({ env: many(n, (i) => ({ name: `A${i}`, value: '1' })) }))],
  ['sources of variables', `${namespace}/pods`, container((n) => ({ envFrom: many(n, () => ({ prefix: '-' })) }))],
  [
    'mounts without volumes',
    `${namespace}/pods`,
    container((n) => ({ volumeMounts: many(n, (i) => ({ name: 'v', mountPath: `/${i}` })) })),
  ],
  [
    'devices without volumes',
    `${namespace}/pods`,
    container((n) => ({ volumeDevices: many(n, (i) => ({ name: 'v', devicePath: `/${i}` })) })),
  ],
  ['arguments', `${namespace}/pods`, container((n) => ({ args: many(n, String) }))],
  ['containers of one name', `${namespace}/pods`, pod((n) => ({ containers: many(n, () => ({ name: 'c', image: 'i' })) }))],
  ['containers', `${namespace}/pods`, pod((n) => ({ containers: many(n, (i) => ({ name: `c${i}`, image: 'i' })) }))],
  ['volumes', `${namespace}/pods`, pod((n) => ({ volumes: many(n, (i) => ({ name: `v${i}`, emptyDir: {} })) }))],
  ['volumes of one name', `${namespace}/pods`, pod((n) => ({ volumes: many(n, () => ({ name: 'v', emptyDir: {} })) }))],
  ['pull secrets', `${namespace}/pods`, pod((n) => ({ imagePullSecrets: many(n, () => ({ name: 's' })) }))],
  ['tolerations', `${namespace}/pods`, pod((n) => ({ tolerations: many(n, (i) => ({ key: `k${i}`, operator: 'Exists' })) }))],
  ['equal tolerations', `${namespace}/pods`, pod((n) => ({ tolerations: many(n, () => ({ operator: 'Exists' })) }))],
  ['host aliases', `${namespace}/pods`, pod((n) => ({ hostAliases: many(n, () => ({ ip: '1.1.1.1', hostnames: ['-'] })) }))],
  [
    'spread constraints',
    `${namespace}/pods`,
    pod((n) => ({
      topologySpreadConstraints: many(n, () => ({ maxSkew: 1, topologyKey: 'k', whenUnsatisfiable: 'DoNotSchedule' })),
    })),
  ],
  ['scheduling gates', `${namespace}/pods`, pod((n) => ({ schedulingGates: many(n, () => ({ name: 'a/b' })) }))],
  [
    'node selector terms',
    `${namespace}/pods`,
    pod((n) => ({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: many(n, () => ({ matchExpressions: [{ key: '-', operator: 'In' }] })),
          },
        },
      },
    })),
  ],
  ['labels', `${namespace}/configmaps`, configMap((n) => ({ labels: Object.fromEntries(many(n, (i) => [`l${i}`, 'v'])) }))],
  [
    'wrong labels',
    `${namespace}/configmaps`,
    configMap((n) => ({ labels: Object.fromEntries(many(n, (i) => [`-l${i}`, '-'])) })),
  ],
  [
    'annotations',
    `${namespace}/configmaps`,
    configMap((n) => ({ annotations: Object.fromEntries(many(n, (i) => [`a${i}`, 'v'])) })),
  ],
  ['finalizers', `${namespace}/configmaps`, configMap((n) => ({ finalizers: many(n, (i) => `example.com/f${i}`) }))],
  ['wrong finalizers', `${namespace}/configmaps`, configMap((n) => ({ finalizers: many(n, () => '-') }))],
  [
    'owner references',
    `${namespace}/configmaps`,
    configMap((n) => ({ ownerReferences: many(n, (i) => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: `u${i}` })) })),
  ],
  [
    'owner references that are controllers',
    `${namespace}/configmaps`,
    configMap((n) => ({
      ownerReferences: many(n, (i) => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: `u${i}`, controller: true })),
    })),
  ],
  ['digits of a quantity', `${namespace}/pods`, container((n) => ({ resources: { requests: { cpu: `${'1'.repeat(n)}x` } } }))],
  [
    'subscripts of a field path',
    `${namespace}/pods`,
    container((n) => ({ env: [{ name: 'A', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: "['".repeat(n) } } }] })),
  ],
  [
    'scopes of a quota',
    `${namespace}/resourcequotas`,
    (n) => ({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'hostile' },
      spec: { scopes: many(n, (i) => `s${i}`), hard: { pods: '1', 'requests.cpu': '1', configmaps: '1' } },
    }),
  ],
  [
    'equal owner references',
    `${namespace}/configmaps`,
    configMap((n) => ({ ownerReferences: many(n, () => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' })) })),
  ],
  [
    'field managers',
    `${namespace}/configmaps`,
    configMap((n) => ({
      managedFields: many(n, (i) => ({
        manager: `m${i}`,
        operation: 'Update',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': {} },
      })),
    })),
  ],
  [
    'keys',
    `${namespace}/configmaps`,
    configMap(
      () => ({}),
      (n) => ({ data: Object.fromEntries(many(n, (i) => [`k${i}`, 'v'])) }),
    ),
  ],
  [
    'wrong keys',
    `${namespace}/configmaps`,
    configMap(
      () => ({}),
      (n) => ({ data: Object.fromEntries(many(n, (i) => [`/${i}`, 'v'])) }),
    ),
  ],
  [
    'unknown fields',
    `${namespace}/configmaps?fieldValidation=Strict`,
    configMap(
      () => ({}),
      (n) => Object.fromEntries(many(n, (i) => [`f${i}`, 1])),
    ),
  ],
  [
    'unknown fields with warnings',
    `${namespace}/configmaps?fieldValidation=Warn`,
    configMap(
      () => ({}),
      (n) => Object.fromEntries(many(n, (i) => [`f${i}`, 1])),
    ),
  ],
  [
    'service ports',
    `${namespace}/services`,
    service((n) => ({ ports: many(n, (i) => ({ name: `p${i}`, port: 1 + (i % 65_535) })) })),
  ],
  ['equal service ports', `${namespace}/services`, service((n) => ({ ports: many(n, () => ({ name: 'p', port: 1 })) }))],
  ['cluster addresses', `${namespace}/services`, service((n) => ({ clusterIPs: many(n, () => 'x') }))],
  ['address families', `${namespace}/services`, service((n) => ({ ipFamilies: many(n, () => 'IPv4') }))],
  [
    'source ranges',
    `${namespace}/services`,
    service((n) => ({ type: 'LoadBalancer', loadBalancerSourceRanges: many(n, () => 'x') })),
  ],
  [
    'rules of a role',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    (n) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'hostile' },
      rules: many(n, (i) => ({ verbs: ['get'], apiGroups: [''], resources: [`r${i}`] })),
    }),
  ],
  [
    'verbs of a role',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    (n) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'hostile' },
      rules: [{ verbs: many(n, (i) => `v${i}`), apiGroups: [''], resources: ['pods'] }],
    }),
  ],
  [
    'expressions of a selector',
    '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
    (n) => ({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'hostile' },
      spec: { selector: { matchExpressions: many(n, (i) => ({ key: `k${i}`, operator: 'NotIn', values: ['v'] })) } },
    }),
  ],
  [
    'ingress paths',
    '/apis/networking.k8s.io/v1/namespaces/default/ingresses',
    (n) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'hostile' },
      spec: { rules: [{ http: { paths: many(n, () => ({ path: 'x' })) } }] },
    }),
  ],
  [
    'selector requirements of a review',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    (n) => ({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: {
        resourceAttributes: {
          verb: 'list',
          resource: 'pods',
          labelSelector: { requirements: many(n, (i) => ({ key: `k${i}`, operator: 'In', values: ['v'] })) },
        },
      },
    }),
  ],
]

/** Bodies that are not Kubernetes objects. */
const texts: readonly (readonly [shape: string, make: (size: number) => string])[] = [
  ['nested lists', (n) => nested(n, '[', ']')],
  ['nested objects', (n) => `${'{"a":'.repeat(n)}1${'}'.repeat(n)}`],
  ['characters of an unfinished string', (n) => `{"a":"${'x'.repeat(n)}`],
  ['equal keys', (n) => `{${many(n, () => '"a":1').join(',')}}`],
  ['digits', (n) => `{"a":${'1'.repeat(n)}}`],
  // At most 1000 digits.
  ['digits of an exponent', (n) => `{"a":1e${'9'.repeat(Math.min(n, 1000))}}`],
  ['backslashes', (n) => `{"a":"${'\\\\'.repeat(n)}"}`],
  ['blanks', (n) => ' '.repeat(n)],
  ['commas', (n) => `[${','.repeat(n)}]`],
  ['zero bytes', (n) => '\0'.repeat(n)],
  ['braces of YAML', (n) => `a: ${'{'.repeat(n)}`],
  ['aliases', (n) => `a: &a [x]\nb: [${many(n, () => '*a').join(', ')}]`],
  ['lists from nested aliases', (n) => nestedAliases(Math.min(9, Math.ceil(Math.log10(n))))],
]

/** Returns a short YAML document. Its aliases expand to ten empty lists, a hundred, and so on, up to 10 to the power of `depth`. */
const nestedAliases = (depth: number): string =>
  ['a0: &a0 []', ...many(depth, (i) => `a${i + 1}: &a${i + 1} [${many(10, () => `*a${i}`).join(', ')}]`)].join('\n')

const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const types = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'] as const

/** Patches of the existing ConfigMap `target`. */
const patches: readonly (readonly [shape: string, type: string, make: (size: number) => unknown])[] = [
  ['additions', 'application/json-patch+json', (n) => many(n, (i) => ({ op: 'add', path: `/data/k${i}`, value: 'v' }))],
  ['copies', 'application/json-patch+json', (n) => many(n, () => ({ op: 'copy', from: '/data', path: '/data/copy' }))],
  ['tests that fail', 'application/json-patch+json', (n) => many(n, () => ({ op: 'test', path: '/x', value: 1 }))],
  ['members', 'application/merge-patch+json', (n) => ({ data: Object.fromEntries(many(n, (i) => [`k${i}`, 'v'])) })],
  [
    'members of the wrong type',
    'application/merge-patch+json',
    (n) => ({ data: Object.fromEntries(many(n, (i) => [`k${i}`, 1])) }),
  ],
  [
    'values',
    'application/strategic-merge-patch+json',
    (n) => ({ metadata: { finalizers: many(n, (i) => `example.com/f${i}`) } }),
  ],
  [
    'deleted values',
    'application/strategic-merge-patch+json',
    (n) => ({ metadata: { '$deleteFromPrimitiveList/finalizers': many(n, (i) => `f${i}`) } }),
  ],
  ['retained keys', 'application/strategic-merge-patch+json', (n) => ({ data: { $retainKeys: many(n, (i) => `k${i}`) } })],
  [
    'owners',
    'application/strategic-merge-patch+json',
    (n) => ({ metadata: { ownerReferences: many(n, (i) => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: `u${i}` })) } }),
  ],
  [
    'deleted owners',
    'application/strategic-merge-patch+json',
    (n) => ({ metadata: { ownerReferences: many(n, (i) => ({ uid: `u${i}`, $patch: 'delete' })) } }),
  ],
  [
    'applied keys',
    'application/apply-patch+yaml',
    (n) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'target' },
      data: Object.fromEntries(many(n, (i) => [`k${i}`, 'v'])),
    }),
  ],
]

/** Long paths and queries. */
const queries: readonly (readonly [shape: string, make: (size: number) => string])[] = [
  ['label requirements', (n) => `${namespace}/pods?labelSelector=${many(n, (i) => `k${i}%3Dv`).join(',')}`],
  ['values of a requirement', (n) => `${namespace}/pods?labelSelector=k+in+(${many(n, (i) => `v${i}`).join(',')})`],
  ['parentheses', (n) => `${namespace}/pods?labelSelector=${'('.repeat(n)}`],
  ['field terms', (n) => `${namespace}/pods?fieldSelector=${many(n, () => 'metadata.name%3Dx').join(',')}`],
  ['parameters', (n) => `${namespace}/pods?${many(n, (i) => `p${i}=1`).join('&')}`],
  ['characters of a continue token', (n) => `${namespace}/pods?limit=1&continue=${'A'.repeat(n)}`],
  ['segments', (n) => `/${many(n, () => 'a').join('/')}`],
  ['characters of a name', (n) => `${namespace}/pods/${'a'.repeat(n)}`],
  ['escapes', (n) => `${namespace}/pods/${'%61'.repeat(n)}`],
]

const ObjectSizes = [10, 300, 3_000]
const TextSizes = [10, 10_000, 1_000_000]
const PatchSizes = [10, 300, 3_000]
const QuerySizes = [1, 30, 100, 500, 1_500]

/** The API server's size limit of a request body, in bytes. */
const MaxBytes = 3 * 2 ** 20

/** Returns a body of this shape with at most `limit` bytes. It is close to the limit, unless `make` limits the length itself. */
function largest(limit: number, make: (size: number) => string): string {
  const perItem = (make(200).length - make(100).length) / 100
  // Indexes have more digits in a longer list, so the first `size` may be too high.
  for (let size = Math.floor((limit * 0.85) / Math.max(perItem, 0.5)); ; size = Math.floor(size * 0.9)) {
    const body = make(size)
    if (body.length <= limit) return body
  }
}

const dryRun = (path: string): string => `${path}${path.includes('?') ? '&' : '?'}dryRun=All`

/**
 * Returns inputs with bodies of at most `maxBytes` bytes, close to this limit unless the shape limits its own length. These bodies cause
 * the most work for the server.
 */
export function largestInputs(maxBytes = MaxBytes): HostileInput[] {
  return [
    ...objects.map(
      ([shape, path, make]): HostileInput => ({
        name: `the most ${shape}`,
        method: 'POST',
        path: path === reviews ? path : dryRun(path),
        type: 'application/json',
        body: largest(maxBytes, (size) => JSON.stringify(make(size))),
      }),
    ),
    ...texts.flatMap(([shape, make]) =>
      types.map(
        (type): HostileInput => ({
          name: `the most ${shape} as ${type}`,
          method: 'POST',
          path: reviews,
          type,
          body: largest(maxBytes, make),
        }),
      ),
    ),
    ...patches.map(
      ([shape, type, make]): HostileInput => ({
        name: `a patch of the most ${shape}`,
        method: 'PATCH',
        path: dryRun(`${namespace}/configmaps/target?fieldManager=hostile`),
        type,
        body: largest(maxBytes, (size) => JSON.stringify(make(size))),
      }),
    ),
  ]
}

/**
 * Returns inputs of every shape in several sizes. No input changes a server: writes are dry runs, are rejected, or are reviews,
 * which are not stored.
 */
export function hostileInputs(): HostileInput[] {
  return [
    ...objects.flatMap(([shape, path, make]) =>
      ObjectSizes.map(
        (size): HostileInput => ({
          name: `${size} ${shape}`,
          method: 'POST',
          path: path === reviews ? path : dryRun(path),
          type: 'application/json',
          body: JSON.stringify(make(size)),
        }),
      ),
    ),
    ...texts.flatMap(([shape, make]) =>
      types.flatMap((type) =>
        TextSizes.map(
          (size): HostileInput => ({
            name: `${size} ${shape} as ${type}`,
            method: 'POST',
            path: reviews,
            type,
            body: make(size),
          }),
        ),
      ),
    ),
    ...patches.flatMap(([shape, type, make]) =>
      PatchSizes.map(
        (size): HostileInput => ({
          name: `a patch of ${size} ${shape}`,
          method: 'PATCH',
          path: dryRun(`${namespace}/configmaps/target?fieldManager=hostile`),
          type,
          body: JSON.stringify(make(size)),
        }),
      ),
    ),
    ...queries.flatMap(([shape, make]) =>
      QuerySizes.map((size): HostileInput => ({ name: `${size} ${shape}`, method: 'GET', path: make(size) })),
    ),
  ]
}
