/** Scenarios with Ingresses, IngressClasses, NetworkPolicies, IPAddresses and ServiceCIDRs. */
import { columnsOf, get, mergePatch, post, put, remove, type Scenario, strategicPatch, variants } from './step.ts'

const base = '/apis/networking.k8s.io/v1'
const objectOf = (kind: string, fields: object, name = 'min') => ({
  apiVersion: 'networking.k8s.io/v1',
  kind,
  metadata: { name },
  ...fields,
})
const backend = { service: { name: 'web', port: { number: 80 } } }
const path = { path: '/', pathType: 'Prefix', backend }
const ingresses = `${base}/namespaces/default/ingresses`
const ingress = objectOf('Ingress', { spec: { rules: [{ host: 'a.example.com', http: { paths: [path] } }] } })
const paths = (...list: object[]) => ({ spec: { rules: [{ http: { paths: list } }] } })
const classes = `${base}/ingressclasses`
const ingressClass = objectOf('IngressClass', { spec: { controller: 'example.com/c' } })
const policies = `${base}/namespaces/default/networkpolicies`
const policy = objectOf('NetworkPolicy', { spec: { podSelector: {} } })
const addresses = `${base}/ipaddresses`
const address = objectOf(
  'IPAddress',
  { spec: { parentRef: { resource: 'services', namespace: 'default', name: 'web' } } },
  '10.9.0.1',
)
const cidrs = `${base}/servicecidrs`
const cidr = objectOf('ServiceCIDR', { spec: { cidrs: ['10.9.0.0/24'] } })

export const scenarios: readonly Scenario[] = [
  {
    name: 'ingresses',
    steps: [
      post(ingresses, ingress),
      post(ingresses, objectOf('Ingress', { spec: { defaultBackend: backend } }, 'default-backend')),
      post(
        ingresses,
        objectOf(
          'Ingress',
          {
            spec: {
              ingressClassName: 'nginx',
              tls: [{ hosts: ['a.example.com', '*.b.example.com'], secretName: 'cert' }],
              defaultBackend: { resource: { apiGroup: 'k8s.example.com', kind: 'Bucket', name: 'static' } },
              rules: [
                { host: 'a.example.com', http: { paths: [path, { ...path, path: '/x', pathType: 'Exact' }] } },
                {
                  host: '*.b.example.com',
                  http: {
                    paths: [
                      { pathType: 'ImplementationSpecific', backend: { service: { name: 'web', port: { name: 'http' } } } },
                    ],
                  },
                },
                { host: 'c.example.com' },
                { host: 'd.example.com' },
              ],
            },
          },
          'max',
        ),
      ),
      ...variants(ingresses, ingress, [
        { spec: null },
        { spec: { rules: [{ host: '1.2.3.4' }] } },
        { spec: { rules: [{ host: 'Not Valid' }] } },
        { spec: { rules: [{ host: '*.Not.Valid' }] } },
        { spec: { rules: [{ http: { paths: [] } }] } },
        { spec: { rules: [{ http: {} }] } },
        paths({ path: '/', backend }),
        paths({ path: 'x', pathType: 'Prefix', backend }),
        paths({ pathType: 'Exact', backend }),
        paths(
          { path: '/a//b', pathType: 'Exact', backend },
          { path: '/a/../b', pathType: 'Prefix', backend },
          { path: '/a/.', pathType: 'Prefix', backend },
          { path: '/a%2fb', pathType: 'Prefix', backend },
        ),
        paths({ path: '/', pathType: 'Sometimes', backend }),
        paths({ path: '/', pathType: 'Prefix' }),
        paths({ path: '/', pathType: 'Prefix', backend: {} }),
        paths({ path: '/', pathType: 'Prefix', backend: { service: { name: 'web' } } }),
        paths({ path: '/', pathType: 'Prefix', backend: { service: { name: '', port: { number: 0 } } } }),
        paths({ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80, name: 'http' } } } }),
        paths({ path: '/', pathType: 'Prefix', backend: { service: { name: 'Not_Valid', port: { number: 70000 } } } }),
        paths({ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { name: 'Not_Valid' } } } }),
        paths({ path: '/', pathType: 'Prefix', backend: { ...backend, resource: { kind: 'a', name: 'b' } } }),
        paths({ path: '/', pathType: 'Prefix', backend: { resource: { kind: '', name: '', apiGroup: 'Not Valid' } } }),
        { spec: { tls: [{ hosts: ['Not Valid', '*.Not.Valid'], secretName: 'Not Valid' }] } },
        { spec: { ingressClassName: 'Not Valid' } },
        { metadata: { annotations: { 'kubernetes.io/ingress.class': 'x' } }, spec: { ingressClassName: 'y' } },
      ]),
      mergePatch(`${ingresses}/min`, { spec: { defaultBackend: backend } }),
      mergePatch(`${ingresses}/min`, { metadata: { annotations: { a: 'b' } } }),
      mergePatch(`${ingresses}/min/status`, {
        status: {
          loadBalancer: { ingress: [{ ip: '10.0.0.1' }, { hostname: 'lb.example.com', ports: [{ port: 80, protocol: 'TCP' }] }] },
        },
      }),
      mergePatch(`${ingresses}/min/status`, { status: { loadBalancer: { ingress: [{ ip: 'x', hostname: 'Not Valid' }] } } }),
      mergePatch(`${ingresses}/min/status`, { status: { loadBalancer: { ingress: [{ hostname: '10.0.0.1' }] } } }),
      columnsOf(ingresses),
      put(`${ingresses}/max`, { ...ingress, metadata: { name: 'max' } }),
      remove(`${ingresses}/min`),
    ],
  },
  {
    name: 'ingress classes',
    steps: [
      post(classes, ingressClass),
      post(
        classes,
        objectOf(
          'IngressClass',
          {
            spec: {
              controller: 'example.com/c',
              parameters: { apiGroup: 'k8s.example.com', kind: 'P', name: 'p', scope: 'Namespace', namespace: 'default' },
            },
          },
          'max',
        ),
      ),
      post(
        classes,
        objectOf('IngressClass', { spec: { controller: 'example.com/c', parameters: { kind: 'P', name: 'p' } } }, 'cluster'),
      ),
      post(classes, {
        ...ingressClass,
        metadata: { name: 'default', annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
      }),
      // Waits until admission has the default class in its cache.
      { ...post(ingresses, objectOf('Ingress', { spec: { defaultBackend: backend } }, 'defaulted')), sleepMs: 500 },
      ...variants(classes, ingressClass, [
        { spec: null },
        { spec: { controller: 'nope' } },
        { spec: { controller: `example.com/${'x'.repeat(300)}` } },
        { spec: { parameters: { kind: '', name: '' } } },
        { spec: { parameters: { kind: 'P', name: 'p', scope: 'Sometimes' } } },
        { spec: { parameters: { kind: 'P', name: 'p', scope: 'Namespace' } } },
        { spec: { parameters: { kind: 'P', name: 'p', scope: 'Cluster', namespace: 'default' } } },
      ]),
      mergePatch(`${classes}/min`, { spec: { controller: 'example.com/other' } }),
      mergePatch(`${classes}/min`, { spec: { parameters: { kind: 'P', name: 'p' } } }),
      columnsOf(classes),
      remove(`${classes}/min`),
      remove(`${classes}/default`),
    ],
  },
  {
    name: 'network policies',
    steps: [
      post(policies, policy),
      post(
        policies,
        objectOf(
          'NetworkPolicy',
          {
            spec: {
              podSelector: { matchLabels: { app: 'db' } },
              ingress: [
                {
                  from: [
                    { podSelector: { matchLabels: { app: 'web' } } },
                    { namespaceSelector: {} },
                    { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } },
                  ],
                  ports: [{ port: 5432 }, { protocol: 'UDP', port: 'dns' }, { port: 1000, endPort: 2000 }],
                },
              ],
              egress: [{}],
            },
          },
          'max',
        ),
      ),
      ...variants(policies, policy, [
        { spec: { policyTypes: ['Sometimes'] } },
        { spec: { policyTypes: ['Ingress', 'Egress', 'Ingress'] } },
        { spec: { podSelector: { matchLabels: { a: 'not valid!' } } } },
        { spec: { ingress: [{ from: [{}] }] } },
        { spec: { ingress: [{ from: [{ ipBlock: { cidr: 'x' } }] }] } },
        { spec: { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16', 'y'] } }] }] } },
        { spec: { ingress: [{ from: [{ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }] }] } },
        { spec: { ingress: [{ ports: [{ port: 0 }, { port: 'Not_Valid' }, { protocol: 'Sometimes', port: 1 }] }] } },
        { spec: { egress: [{ ports: [{ endPort: 5 }, { port: 'dns', endPort: 5 }, { port: 10, endPort: 5 }] }] } },
      ]),
      mergePatch(`${policies}/min`, { spec: { policyTypes: ['Egress'] } }),
      strategicPatch(`${policies}/min`, { metadata: { labels: { a: 'b' } } }),
      columnsOf(policies),
      remove(`${policies}/min`),
    ],
  },
  {
    name: 'addresses and service CIDRs',
    steps: [
      post(addresses, address),
      post(addresses, { ...address, metadata: { name: '2001:db8::1' } }),
      post(addresses, { ...address, metadata: { name: 'nope' } }),
      post(addresses, { ...address, metadata: { name: '10.009.0.2' } }),
      post(addresses, { ...address, metadata: { name: '10.9.0.3' }, spec: null }),
      post(addresses, { ...address, metadata: { name: '10.9.0.3' }, spec: { parentRef: { resource: '', name: '' } } }),
      mergePatch(`${addresses}/10.9.0.1`, { spec: { parentRef: { name: 'other' } } }),
      get(`${addresses}?fieldSelector=spec.parentRef.name%3Dnone`),
      remove(`${addresses}/10.9.0.1`),
      post(cidrs, cidr),
      post(cidrs, objectOf('ServiceCIDR', { spec: { cidrs: ['10.10.0.0/16', '2001:db8::/64'] } }, 'dual')),
      ...variants(cidrs, cidr, [
        { spec: null },
        { spec: { cidrs: [] } },
        { spec: { cidrs: ['nope'] } },
        { spec: { cidrs: ['10.9.0.1/24'] } },
        { spec: { cidrs: ['10.9.0.0/24', '10.11.0.0/24'] } },
        { spec: { cidrs: ['10.9.0.0/24', '2001:db8::/64', '10.12.0.0/24'] } },
      ]),
      mergePatch(`${cidrs}/min`, { spec: { cidrs: ['10.9.1.0/24'] } }),
      mergePatch(`${cidrs}/min/status`, {
        status: {
          conditions: [{ type: 'Ready', status: 'True', reason: 'R', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
        },
      }),
      columnsOf(`${cidrs}/min`),
    ],
  },
]
