/** Requests of clients other than kubectl and Cluster API: conformance tests, generators of manifests, dashboards. */
import { get, post, remove, type Scenario, type Sent, type Step } from './step.ts'

const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const metadataOnly = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }

const configMaps = '/api/v1/namespaces/default/configmaps'
const applyText = (path: string, body: string, query = ''): Step => ({
  request: {
    method: 'PATCH',
    path: `${path}?fieldManager=applier${query}`,
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body,
  },
})
/** Returns the step with its request as preparation: the request must succeed, and its response is not recorded. */
const prepared = ({ request }: Step): Step => ({ prepare: request! })
const delayed = (step: Step, sleepMs: number): Step => ({ ...step, sleepMs })
const asUser = (path: string, headers: Sent['headers'], body: unknown): Step => post(path, body, headers)

/** Returns a CustomResourceDefinition `<plural>.clients.example.com` with these versions. */
const definition = (plural: string, kind: string, versions: readonly object[]) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.clients.example.com` },
  spec: {
    group: 'clients.example.com',
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions,
  },
})
const versionOf = (name: string, spec: object, fields: object = {}) => ({
  name,
  served: true,
  storage: true,
  schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
  ...fields,
})
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const customResources = (version: string, plural: string) => `/apis/clients.example.com/${version}/namespaces/default/${plural}`
const openSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** Milliseconds until a real server serves a new CustomResourceDefinition or evaluates a new policy. */
const SettleTime = 3000

const withSubresources = {
  subresources: { status: {}, scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.count' } },
}

const autoscalers = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers'
const autoscaler = (name: string, apiVersion: string, kind: string) => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name },
  spec: { maxReplicas: 3, scaleTargetRef: { apiVersion, kind, name: 'target' } },
})

/**
 * Returns the schema of a spec with `rules` for its field `name`. Unless `rules` is empty, the items of its list have a rule, too. Objects
 * that were stored before the rules were added may violate them.
 */
const specSchema = (rules: readonly object[]) => ({
  type: 'object',
  properties: {
    size: { type: 'integer' },
    name: { type: 'string', 'x-kubernetes-validations': rules },
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['key'],
      items: {
        type: 'object',
        required: ['key'],
        properties: { key: { type: 'string' }, value: { type: 'string' } },
        'x-kubernetes-validations': rules.length === 0 ? [] : [{ rule: "self.value != 'bad'", message: 'must not be bad' }],
      },
    },
  },
})

const owned = (name: string, owner: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name,
    ownerReferences: [
      { apiVersion: 'v1', kind: 'ConfigMap', name: owner, uid: `{{${owner}}}`, controller: true, blockOwnerDeletion: true },
    ],
  },
})
/** Returns a step that creates a ConfigMap, and saves its uid in the variable `name`. */
const savedConfigMap = (name: string): Step => ({
  prepare: { method: 'POST', path: configMaps, body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } } },
  save: { [name]: 'metadata.uid' },
})
/** Returns a step that sets the owner of a ConfigMap. */
const ownedBy = (name: string, owner: string): Step => ({
  prepare: { method: 'PATCH', path: `${configMaps}/${name}`, body: owned(name, owner) },
})

const policies = '/apis/admissionregistration.k8s.io/v1'
const policy = (name: string, resource: string, validations: readonly object[]) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name },
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: {
      resourceRules: [
        { apiGroups: ['clients.example.com'], apiVersions: ['*'], operations: ['*'], resources: [resource, `${resource}/*`] },
      ],
    },
    validations,
  },
})
const binding = (name: string) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name },
  spec: { policyName: name, validationActions: ['Deny'] },
})
const customResource = (kind: string, name: string, fields: object = {}) => ({
  apiVersion: 'clients.example.com/v1',
  kind,
  metadata: { name },
  ...fields,
})

export const scenarios: readonly Scenario[] = [
  {
    name: 'applied YAML in flow style',
    steps: [
      applyText(`${configMaps}/flow`, '{apiVersion: v1, kind: ConfigMap, metadata: {name: flow,}, data: {a: b, c: "d",},}'),
      applyText(`${configMaps}/flow`, '  {"apiVersion": "v1", "kind": "ConfigMap", metadata: {name: flow}, data: {a: "1"}}\n'),
      applyText(`${configMaps}/flow`, '{apiVersion: v1, kind: ConfigMap} # said beside it\n'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1","a":"2"}}'),
      applyText(
        `${configMaps}/flow`,
        '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1","a":"2"}}',
        '&fieldValidation=Strict',
      ),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap",}'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap"'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap"]'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1" "kind":"ConfigMap"}'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap"} more'),
      applyText(`${configMaps}/flow`, '{}}'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":1}}'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"\\u00e9\\/"}}'),
      applyText(`${configMaps}/flow`, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"unclosed}}'),
      applyText(`${configMaps}/flow`, 'apiVersion: v1\nkind: ConfigMap\n\tdata: {}\n'),
      applyText(`${configMaps}/flow`, 'apiVersion: v1\nkind: ConfigMap\n data: {}\n'),
      applyText(`${configMaps}/flow`, 'apiVersion: v1\nkind: ConfigMap\ndata: {a: [}\n'),
      applyText(`${configMaps}/flow`, 'apiVersion: v1\nkind: *missing\n'),
    ],
  },
  {
    name: 'applied nulls and empty maps',
    steps: [
      applyText(
        `${configMaps}/nulls`,
        'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nulls\n  annotations: {}\n  labels: null\ndata: {}\n',
      ),
      applyText(`${configMaps}/nulls`, 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nulls\n  annotations:\ndata:\n'),
      applyText(
        `${configMaps}/nulls`,
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nulls, finalizers: [], ownerReferences: null}\ndata: {a: null}\n',
      ),
      applyText(`${configMaps}/nulls`, 'apiVersion: v1\nkind: ConfigMap\nmetadata: null\n'),
      applyText(
        '/apis/rbac.authorization.k8s.io/v1/clusterroles/nulls',
        'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: nulls, annotations: {}}\nrules: null\n',
      ),
      applyText(
        '/apis/rbac.authorization.k8s.io/v1/clusterroles/empty',
        'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: empty, annotations: null}\nrules: []\n',
      ),
      applyText(
        '/apis/apps/v1/namespaces/default/deployments/nulls',
        'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: nulls, labels: {}}\nspec:\n  strategy: {}\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}, annotations: null}\n    spec:\n      nodeSelector: {}\n      volumes: null\n      securityContext: null\n      containers: [{name: a, image: b, resources: {}, env: [], ports: null}]\n',
      ),
      prepared(
        post(
          definitions,
          definition('nulls', 'Hollow', [
            versionOf('v1', {
              type: 'object',
              properties: {
                map: { type: 'object', additionalProperties: { type: 'string' } },
                kept: { type: 'object', nullable: true, additionalProperties: { type: 'string' } },
                list: { type: 'array', items: { type: 'string' } },
                inner: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string', nullable: true } } },
              },
            }),
          ]),
        ),
      ),
      delayed(
        applyText(
          `${customResources('v1', 'nulls')}/a`,
          'apiVersion: clients.example.com/v1\nkind: Hollow\nmetadata: {name: a, annotations: {}, labels: null}\nspec: {map: {}, kept: null, list: [], inner: {}}\n',
        ),
        SettleTime,
      ),
      applyText(
        `${customResources('v1', 'nulls')}/a`,
        'apiVersion: clients.example.com/v1\nkind: Hollow\nmetadata: {name: a}\nspec: {map: null, list: null, inner: {a: null, b: null}}\n',
      ),
      applyText(
        `${customResources('v1', 'nulls')}/a`,
        'apiVersion: clients.example.com/v1\nkind: Hollow\nmetadata: {name: a}\nspec: null\n',
      ),
    ],
  },
  {
    name: 'managed fields of versions that are no longer served',
    steps: [
      prepared(
        post(
          definitions,
          definition('tools', 'Tool', [versionOf('v1', openSchema), versionOf('v2', openSchema, { storage: false })]),
        ),
      ),
      delayed(
        applyText(
          `${customResources('v2', 'tools')}/a`,
          '{apiVersion: clients.example.com/v2, kind: Tool, metadata: {name: a}, spec: {a: 1}}',
        ),
        SettleTime,
      ),
      prepared({
        request: {
          method: 'PATCH',
          path: `${definitions}/tools.clients.example.com`,
          body: { spec: { versions: [versionOf('v1', openSchema)] } },
        },
      }),
      delayed(
        applyText(
          `${customResources('v1', 'tools')}/a`,
          '{apiVersion: clients.example.com/v1, kind: Tool, metadata: {name: a}, spec: {b: 1}}',
        ),
        SettleTime,
      ),
      {
        request: {
          method: 'PATCH',
          path: `${customResources('v1', 'tools')}/a`,
          body: { spec: { c: 1 } },
        },
      },
      {
        request: {
          method: 'PATCH',
          path: `${customResources('v1', 'tools')}/a?fieldManager=other`,
          body: { spec: { a: 2 } },
        },
      },
      get(`${customResources('v1', 'tools')}/a`),
      prepared(
        post(
          definitions,
          definition('spares', 'Spare', [versionOf('v1', openSchema), versionOf('v2', openSchema, { storage: false })]),
        ),
      ),
      delayed(
        applyText(
          `${customResources('v2', 'spares')}/a`,
          '{apiVersion: clients.example.com/v2, kind: Spare, metadata: {name: a}, spec: {a: 1}}',
        ),
        SettleTime,
      ),
      prepared({
        request: {
          method: 'PATCH',
          path: `${definitions}/spares.clients.example.com`,
          body: {
            spec: { versions: [versionOf('v1', openSchema), versionOf('v2', openSchema, { storage: false, served: false })] },
          },
        },
      }),
      delayed(
        applyText(
          `${customResources('v1', 'spares')}/a`,
          '{apiVersion: clients.example.com/v1, kind: Spare, metadata: {name: a}, spec: {b: 1}}',
        ),
        SettleTime,
      ),
      { request: { method: 'PATCH', path: `${customResources('v1', 'spares')}/a?fieldManager=other`, body: { spec: { b: 2 } } } },
    ],
  },
  {
    name: 'policies for custom resources',
    steps: [
      prepared(
        post(
          definitions,
          definition('gears', 'Gear', [
            versionOf(
              'v1',
              { type: 'object', properties: { foo: { type: 'string' }, count: { type: 'integer' } } },
              withSubresources,
            ),
          ]),
        ),
      ),
      prepared(post(definitions, definition('blobs', 'Blob', [versionOf('v1', openSchema, withSubresources)]))),
      prepared(
        post(
          `${policies}/validatingadmissionpolicies`,
          policy('gears', 'gears', [
            {
              expression: "!has(object.spec) || !has(object.spec.foo) || object.spec.foo != 'invalid'",
              message: 'foo is invalid',
            },
            { expression: '!has(object.spec) || !has(object.spec.count) || object.spec.count < 10' },
          ]),
        ),
      ),
      prepared(post(`${policies}/validatingadmissionpolicybindings`, binding('gears'))),
      prepared(
        post(
          `${policies}/validatingadmissionpolicies`,
          policy('blobs', 'blobs', [
            { expression: "!has(object.spec) || !has(object.spec.foo) || object.spec.foo != 'invalid'" },
            { expression: '!has(object.spec) || !has(object.spec.count) || object.spec.count < 10' },
          ]),
        ),
      ),
      prepared(post(`${policies}/validatingadmissionpolicybindings`, binding('blobs'))),
      ...[
        ['gears', 'Gear'],
        ['blobs', 'Blob'],
      ].flatMap(([plural, kind]): Step[] => [
        delayed(post(customResources('v1', plural!), customResource(kind!, 'none')), plural === 'gears' ? SettleTime : 0),
        post(customResources('v1', plural!), customResource(kind!, 'empty', { spec: {} })),
        post(customResources('v1', plural!), customResource(kind!, 'good', { spec: { foo: 'good', count: 3 } })),
        post(customResources('v1', plural!), customResource(kind!, 'bad', { spec: { foo: 'invalid' } })),
        post(customResources('v1', plural!), customResource(kind!, 'many', { spec: { count: 10 } })),
      ]),
      ...['gears', 'blobs'].flatMap((plural): Step[] => [
        {
          request: {
            method: 'PATCH',
            path: `${customResources('v1', plural)}/good/scale`,
            body: { spec: { replicas: 4 } },
          },
        },
        { request: { method: 'PATCH', path: `${customResources('v1', plural)}/good/status`, body: { status: { a: 1 } } } },
        remove(`${customResources('v1', plural)}/good`),
      ]),
      post(customResources('v1', 'blobs'), customResource('Blob', 'typed', { spec: { foo: 1 } })),
      post(customResources('v1', 'blobs'), customResource('Blob', 'text', { spec: { count: 'x' } })),
    ],
  },
  {
    name: 'ratcheting of validation rules',
    steps: [
      prepared(post(definitions, definition('ratchets', 'Ratchet', [versionOf('v1', specSchema([]))]))),
      {
        ...prepared(
          post(
            customResources('v1', 'ratchets'),
            customResource('Ratchet', 'a', {
              spec: { name: 'wrong', size: 1 },
            }),
          ),
        ),
        sleepMs: SettleTime,
      },
      prepared(
        post(
          customResources('v1', 'ratchets'),
          customResource('Ratchet', 'listed', {
            spec: {
              size: 1,
              items: [
                { key: 'a', value: 'bad' },
                { key: 'b', value: 'good' },
              ],
            },
          }),
        ),
      ),
      prepared({
        request: {
          method: 'PATCH',
          path: `${definitions}/ratchets.clients.example.com`,
          body: {
            spec: {
              versions: [
                versionOf(
                  'v1',
                  specSchema([
                    { rule: "self == 'right'", message: 'must be right' },
                    { rule: "self.startsWith('r')", messageExpression: "'not like ' + self" },
                  ]),
                ),
              ],
            },
          },
        },
      }),
      delayed(
        { request: { method: 'PATCH', path: `${customResources('v1', 'ratchets')}/a`, body: { spec: { size: 2 } } } },
        SettleTime,
      ),
      ...[
        [
          'listed',
          {
            spec: {
              items: [
                { key: 'b', value: 'good' },
                { key: 'a', value: 'bad' },
              ],
            },
          },
        ],
        // The errors of spec.name are new; the error of spec.items existed before the update.
        ['listed', { spec: { name: 'worse' } }],
        ['listed', { spec: { items: [{ key: 'b', value: 'bad' }] } }],
        ['a', { spec: { name: 'worse' } }],
        ['a', { metadata: { labels: { a: 'b' } } }],
        ['a', { spec: { name: 'right' } }],
      ].map(
        ([name, body], index): Step => ({
          request: { method: 'PATCH', path: `${customResources('v1', 'ratchets')}/${name as string}`, body },
          // The server first tries the update with the object in its cache. If the cache lacks the previous update, the server repeats
          // the update, and the response contains the warnings twice.
          ...(index === 1 ? { sleepMs: 500 } : {}),
        }),
      ),
    ],
  },
  {
    name: 'circular owner references',
    steps: [
      savedConfigMap('ringa'),
      savedConfigMap('ringb'),
      savedConfigMap('ringc'),
      ownedBy('ringa', 'ringc'),
      ownedBy('ringb', 'ringa'),
      ownedBy('ringc', 'ringb'),
      {
        ...remove(`${configMaps}/ringa`, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Foreground' }),
        sleepMs: 1000,
      },
      delayed(get(`${configMaps}/ringa`), 6000),
      get(`${configMaps}/ringb`),
      get(`${configMaps}/ringc`),
      savedConfigMap('paira'),
      savedConfigMap('pairb'),
      ownedBy('paira', 'pairb'),
      ownedBy('pairb', 'paira'),
      {
        ...remove(`${configMaps}/paira`, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Foreground' }),
        sleepMs: 1000,
      },
      delayed(get(`${configMaps}/paira`), 6000),
      get(`${configMaps}/pairb`),
    ],
  },
  {
    name: 'unknown and duplicate fields',
    steps: [
      prepared(
        post(
          definitions,
          definition('stricts', 'Strict', [versionOf('v1', { type: 'object', properties: { a: { type: 'string' } } })]),
        ),
      ),
      ...['', '?fieldValidation=Strict', '?fieldValidation=Warn&'].flatMap((query, index): Step[] => [
        delayed(
          post(
            `${customResources('v1', 'stricts')}${query}`,
            `{"apiVersion":"clients.example.com/v1","kind":"Strict","metadata":{"name":"a${index}","unknownMeta":1},"spec":{"a":"1","a":"2","other":1},"top":1,"top":2,"kind":"Strict"}`,
          ),
          index === 0 ? SettleTime : 0,
        ),
        post(
          `${configMaps}${query}`,
          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"strict${index}"},"data":{"a":"1","a":"2"},"top":1,"kind":"ConfigMap","more":{},"top":2,"immutable":false,"immutable":true}`,
        ),
      ]),
      ...[
        [
          customResources('v1', 'stricts'),
          'apiVersion: clients.example.com/v1\nkind: Strict\nmetadata:\n  name: why\nspec:\n  a: b\n  a: c\n  other: 1\n',
        ],
        [configMaps, 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: why\ndata:\n  a: b\n  a: c\nother: 1\n'],
      ].map(([path, body]): Step => post(`${path}?fieldValidation=Strict`, body, { 'content-type': 'application/yaml' })),
      // Unstable with strict validation, because the message of the error contains the whole object with its timestamps.
      ...['', '?fieldValidation=Strict'].flatMap((query): Step[] =>
        [
          {
            request: {
              method: 'PATCH',
              path: `${customResources('v1', 'stricts')}/a0${query}`,
              body: '{"spec":{"a":"3","a":"4","other":1}}',
            },
          },
          {
            request: { method: 'PATCH', path: `${configMaps}/strict0${query}`, body: '{"data":{"a":"3","a":"4"},"other":1}' },
          },
          {
            request: {
              method: 'PATCH',
              path: `${configMaps}/strict0${query}`,
              headers: { 'content-type': 'application/json-patch+json' },
              body: '[{"op":"add","path":"/data/b","value":"1","value":"2","extra":1},{"op":"add","path":"/nothing","value":1}]',
            },
          },
        ].map((step) => (query === '' ? step : { ...step, unstable: true as const })),
      ),
    ],
  },
  {
    name: 'tables of resources without columns',
    steps: [
      ...['subjectaccessreviews', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'].flatMap((plural): Step[] => [
        post(`/apis/authorization.k8s.io/v1/${plural}`, { spec: {} }, table),
      ]),
      post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'x' } }, table),
      post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, table),
      post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { accept: `${table.accept},application/json` }),
      post(
        '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } },
        metadataOnly,
      ),
      post('/api/v1/namespaces/default/serviceaccounts/default/token', {}, table),
      prepared(
        post('/api/v1/namespaces/default/pods', {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'tabled' },
          spec: { automountServiceAccountToken: false, containers: [{ name: 'a', image: 'b' }] },
        }),
      ),
      post('/api/v1/namespaces/default/pods/tabled/binding', { target: { name: 'none' } }, table),
      post('/api/v1/namespaces/default/bindings', { metadata: { name: 'tabled' }, target: { name: 'none' } }, table),
      {
        request: {
          method: 'GET',
          path: '/api/v1/namespaces/default/pods/tabled/status?includeObject=None',
          headers: table,
        },
      },
      {
        request: {
          method: 'GET',
          path: '/api/v1/namespaces/default/pods/tabled/ephemeralcontainers?includeObject=None',
          headers: table,
        },
      },
      {
        request: { method: 'GET', path: '/api/v1/namespaces/default/pods/tabled/resize?includeObject=None', headers: table },
      },
      post('/api/v1/namespaces/default/pods/tabled/eviction', { metadata: { name: 'tabled' } }, table),
      { request: { method: 'PUT', path: '/api/v1/namespaces/default/finalize', headers: table, body: {} } },
    ],
  },
  {
    name: 'autoscalers of targets in the core group',
    steps: [
      post(autoscalers, autoscaler('core', 'v1', 'ReplicationController')),
      post(autoscalers, autoscaler('none', '', 'ReplicationController')),
      post(autoscalers, autoscaler('apps', 'apps/v1', 'Deployment')),
      post(autoscalers, autoscaler('wrong', 'a/b/c', 'Deployment')),
      post(autoscalers, autoscaler('no-version', 'v1', '')),
      post(autoscalers, autoscaler('core-pod', 'v1', 'Pod')),
      {
        request: {
          method: 'PATCH',
          path: `${autoscalers}/core`,
          body: { spec: { scaleTargetRef: { kind: 'ReplicaSet' } } },
        },
      },
      { request: { method: 'PATCH', path: `${autoscalers}/core`, body: { spec: { maxReplicas: 5 } } } },
      post('/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers', {
        apiVersion: 'autoscaling/v1',
        kind: 'HorizontalPodAutoscaler',
        metadata: { name: 'old' },
        spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'v1', kind: 'ReplicationController', name: 'target' } },
      }),
    ],
  },
  {
    name: 'impersonated groups with commas',
    steps: [
      asUser(
        '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        { 'impersonate-user': 'jane', 'impersonate-group': 'CN=ops,OU=people, DC=example' },
        {},
      ),
      asUser(
        '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        { 'impersonate-user': 'jane', 'impersonate-group': 'ops', 'impersonate-extra-scopes': 'a,b, c' },
        {},
      ),
    ],
  },
]
