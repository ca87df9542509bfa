/**
 * Scenarios of API groups with few kinds: CertificateSigningRequests, EndpointSlices, PriorityClasses, RuntimeClasses, Leases, APIServices,
 * FlowSchemas and PriorityLevelConfigurations. Also Pods with a RuntimeClass or PriorityClass.
 */
import { columnsOf, get, mergePatch, post, remove, type Scenario, variants } from './step.ts'

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
// A certificate request for CN=alice, O=devs.
const pem =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYk1JR0JBZ0VBTUI4eERUQUxCZ05WQkFvTUJHUmxkbk14RGpBTUJnTlZCQU1NQldGc2FXTmxNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFSUhqUHZBTFF3TWw4MXo0TGRETXdmQnZMOGJ3a1dmVDBORUh3CllVdG16ajliWUhLY1pPOHdOL01QbkFHb3d5YSt6anU4WjdoTTlORXdGaUMwM2dCcHI2QUFNQW9HQ0NxR1NNNDkKQkFNQ0Ewa0FNRVlDSVFDUzEvblFHWjcrTGFTcVphN2o2allvbmNJOEpjbE5SNEpPTTFaWDBIdWtEd0loQUxKeApPL0t3bnRvRVkrUzhOSTV5UUQzQUhBWWV0d2dEOEFIZUlSWml3d3U1Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo='
const signing = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: 'min' },
  spec: { request: pem, signerName: 'example.com/signer', usages: ['client auth'] },
}
const approved = { type: 'Approved', status: 'True', reason: 'Fine', message: 'so be it' }
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
const slice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'min' },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.1'] }],
  ports: [{ port: 80 }],
}
const classes = '/apis/scheduling.k8s.io/v1/priorityclasses'
const priorityClass = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'min' }, value: 1000 }
const runtimes = '/apis/node.k8s.io/v1/runtimeclasses'
const runtime = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'min' }, handler: 'runc' }
const pods = '/api/v1/namespaces/default/pods'
const pod = (name: string, spec: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { automountServiceAccountToken: false, containers: [{ name: 'main', image: 'nginx' }], ...spec },
})
const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'min' },
  spec: { holderIdentity: 'me', leaseDurationSeconds: 15 },
}
const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices'
const apiService = {
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: 'v1.metrics.example.com' },
  spec: {
    group: 'metrics.example.com',
    version: 'v1',
    groupPriorityMinimum: 100,
    versionPriority: 100,
    insecureSkipTLSVerify: true,
    service: { namespace: 'default', name: 'metrics' },
  },
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'certificate signing requests',
    steps: [
      post(requests, signing),
      post(requests, {
        ...signing,
        metadata: { name: 'max' },
        spec: {
          ...signing.spec,
          expirationSeconds: 3600,
          usages: ['digital signature', 'client auth'],
          username: 'forged',
          groups: ['forged'],
          uid: 'forged',
        },
        status: { certificate: 'YQ==' },
      }),
      post(requests, {
        ...signing,
        metadata: { name: 'kubelet' },
        spec: { ...signing.spec, signerName: 'kubernetes.io/kube-apiserver-client' },
      }),
      ...variants(requests, signing, [
        { spec: null },
        { spec: { request: null } },
        { spec: { request: 'YQ==' } },
        { spec: { signerName: null } },
        { spec: { signerName: 'nope' } },
        { spec: { signerName: 'kubernetes.io/legacy-unknown' } },
        { spec: { signerName: 'Not Valid/x' } },
        { spec: { usages: null } },
        { spec: { usages: ['sometimes'] } },
        { spec: { usages: ['client auth', 'client auth'] } },
        { spec: { expirationSeconds: 10 } },
      ]),
      mergePatch(`${requests}/min`, { spec: { signerName: 'example.com/other' }, metadata: { labels: { a: 'b' } } }),
      mergePatch(`${requests}/min/approval`, { status: { conditions: [approved] } }),
      mergePatch(`${requests}/min/approval`, { status: { conditions: [] } }),
      mergePatch(`${requests}/min/approval`, {
        status: {
          conditions: [
            { ...approved, message: 'other' },
            { ...approved, type: 'Denied' },
          ],
        },
      }),
      mergePatch(`${requests}/kubelet/approval`, { status: { conditions: [{ ...approved, status: 'False' }] } }),
      mergePatch(`${requests}/kubelet/approval`, {
        status: { conditions: [{ ...approved, type: 'Denied', status: undefined }] },
      }),
      mergePatch(`${requests}/kubelet/approval`, {
        status: { conditions: [{ ...approved, type: 'Denied' }], certificate: 'YQ==' },
      }),
      mergePatch(`${requests}/max/status`, { status: { conditions: [approved] } }),
      mergePatch(`${requests}/max/status`, { status: { certificate: 'YQ==' } }),
      mergePatch(`${requests}/max/status`, { status: { conditions: [{ type: 'Failed', status: 'True', reason: 'X' }] } }),
      get(`${requests}/max/approval`),
      columnsOf(requests),
      get(`${requests}?fieldSelector=spec.signerName%3Dnone`),
      get(`${requests}?fieldSelector=spec.username%3Dnone`),
      remove(`${requests}/min`),
    ],
  },
  {
    name: 'endpoint slices',
    steps: [
      post(slices, slice),
      post(slices, {
        ...slice,
        metadata: { name: 'max', labels: { 'kubernetes.io/service-name': 'web' } },
        endpoints: [
          {
            addresses: ['10.0.0.1', '10.0.0.2'],
            conditions: { ready: true, serving: true, terminating: false },
            hostname: 'a',
            nodeName: 'n',
            zone: 'z',
            hints: { forZones: [{ name: 'z' }] },
            targetRef: { kind: 'Pod', namespace: 'default', name: 'a' },
          },
          { addresses: ['10.0.0.3', '10.0.0.4'] },
        ],
        ports: [
          { name: 'http', port: 80, appProtocol: 'http' },
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'any' },
          { name: 'more', port: 5 },
        ],
      }),
      post(slices, {
        ...slice,
        metadata: { name: 'fqdn' },
        addressType: 'FQDN',
        endpoints: [{ addresses: ['a.example.com'] }],
        ports: [],
      }),
      post(slices, { ...slice, metadata: { name: 'empty' }, endpoints: null, ports: null }),
      ...variants(slices, slice, [
        { addressType: null },
        { addressType: 'Sometimes' },
        { addressType: 'IPv6' },
        { endpoints: [{ addresses: [] }] },
        { endpoints: [{ addresses: ['nope'] }] },
        { endpoints: [{ addresses: ['127.0.0.1'] }] },
        { endpoints: [{ addresses: ['10.0.0.1'], hostname: 'Not Valid', nodeName: 'Not Valid' }] },
        { endpoints: [{ addresses: ['10.0.0.1'], deprecatedTopology: { zone: 'a', 'kubernetes.io/hostname': 'x' } }] },
        { ports: [{ port: 70000 }] },
        { ports: [{ name: 'Not Valid', port: 80, protocol: 'Sometimes', appProtocol: 'Not Valid' }] },
        { ports: [{ port: 80 }, { port: 81 }] },
        { addressType: 'FQDN', endpoints: [{ addresses: ['Not Valid'] }] },
      ]),
      mergePatch(`${slices}/min`, { addressType: 'IPv6' }),
      mergePatch(`${slices}/min`, { endpoints: [{ addresses: ['10.0.0.9'] }] }),
      mergePatch(`${slices}/min`, { metadata: { labels: { a: 'b' } } }),
      columnsOf(`${slices}/max`),
      columnsOf(`${slices}/empty`),
      remove(`${slices}/min`),
    ],
  },
  {
    name: 'priority classes',
    steps: [
      get(`${classes}/system-cluster-critical`),
      get(`${classes}/system-node-critical`),
      post(classes, priorityClass),
      post(classes, {
        ...priorityClass,
        metadata: { name: 'max' },
        globalDefault: true,
        preemptionPolicy: 'Never',
        description: 'as it is',
      }),
      ...variants(classes, priorityClass, [
        { metadata: { name: 'system-mine' } },
        { value: 1000000001 },
        { preemptionPolicy: 'Sometimes' },
        { globalDefault: true },
        { value: null },
      ]),
      mergePatch(`${classes}/min`, { value: 5 }),
      mergePatch(`${classes}/min`, { preemptionPolicy: 'Never' }),
      mergePatch(`${classes}/min`, { description: 'other' }),
      columnsOf(`${classes}/max`),
      remove(`${classes}/min`),
      remove(`${classes}/max`),
    ],
  },
  {
    name: 'pods with runtime and priority classes',
    steps: [
      post(runtimes, {
        ...runtime,
        metadata: { name: 'sandbox' },
        overhead: { podFixed: { cpu: '250m', memory: '0.5Gi' } },
        scheduling: {
          nodeSelector: { runtime: 'sandbox' },
          tolerations: [{ key: 'sandbox', operator: 'Exists', effect: 'NoSchedule' }],
        },
      }),
      post(runtimes, { ...runtime, metadata: { name: 'plain' } }),
      post(pods, pod('sandboxed', { runtimeClassName: 'sandbox' })),
      post(
        pods,
        pod('selective', {
          runtimeClassName: 'sandbox',
          nodeSelector: { disk: 'fast' },
          overhead: { cpu: '0.25', memory: '512Mi' },
          tolerations: [
            { key: 'mine', operator: 'Equal', value: 'x', effect: 'NoSchedule' },
            { key: 'sandbox', operator: 'Equal', value: 'x', effect: 'NoSchedule' },
            { key: 'sandbox', value: 'y' },
          ],
        }),
      ),
      post(pods, pod('plain', { runtimeClassName: 'plain' })),
      post(pods, pod('bad-0', { runtimeClassName: 'missing' })),
      post(pods, pod('bad-1', { runtimeClassName: 'Not Valid' })),
      post(pods, pod('bad-2', { runtimeClassName: 'sandbox', nodeSelector: { runtime: 'other' } })),
      post(pods, pod('bad-3', { runtimeClassName: 'sandbox', overhead: { cpu: '1' } })),
      post(pods, pod('bad-4', { runtimeClassName: 'plain', overhead: { cpu: '1' } })),
      post(pods, pod('bad-5', { overhead: { cpu: '1' } })),
      post(classes, { ...priorityClass, metadata: { name: 'high' }, preemptionPolicy: 'Never' }),
      post(pods, pod('high', { priorityClassName: 'high' })),
      post(pods, pod('system', { priorityClassName: 'system-node-critical' })),
      post(pods, pod('bad-6', { priorityClassName: 'missing' })),
      post(pods, pod('bad-7', { priorityClassName: 'high', priority: 5 })),
      post(pods, pod('bad-8', { priorityClassName: 'high', preemptionPolicy: 'PreemptLowerPriority' })),
      post(pods, pod('bad-9', { priority: 5 })),
      post(requests, {
        ...signing,
        metadata: { name: 'client' },
        spec: { ...signing.spec, signerName: 'kubernetes.io/kube-apiserver-client' },
      }),
    ],
  },
  {
    name: 'runtime classes',
    steps: [
      post(runtimes, runtime),
      post(runtimes, {
        ...runtime,
        metadata: { name: 'max' },
        overhead: { podFixed: { cpu: '10m', memory: '1Mi' } },
        scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'k', operator: 'Exists' }] },
      }),
      ...variants(runtimes, runtime, [
        { handler: null },
        { handler: 'Not Valid' },
        { overhead: { podFixed: { cpu: '-1' } } },
        { scheduling: { nodeSelector: { a: 'not valid!' } } },
        {
          scheduling: {
            tolerations: [
              { key: 'a', operator: 'Exists' },
              { key: 'a', operator: 'Exists' },
            ],
          },
        },
      ]),
      mergePatch(`${runtimes}/min`, { handler: 'other' }),
      columnsOf(runtimes),
      remove(`${runtimes}/min`),
    ],
  },
  {
    name: 'leases',
    steps: [
      post(leases, lease),
      post(leases, {
        ...lease,
        metadata: { name: 'max' },
        spec: {
          ...lease.spec,
          strategy: 'OldestEmulationVersion',
          preferredHolder: 'you',
          leaseTransitions: 3,
          renewTime: '2026-01-01T00:00:00.000001Z',
        },
      }),
      post(leases, { ...lease, metadata: { name: 'empty' }, spec: undefined }),
      ...variants(leases, lease, [
        { spec: { leaseDurationSeconds: 0 } },
        { spec: { leaseTransitions: -1 } },
        { spec: { holderIdentity: '' } },
        { spec: { preferredHolder: 'you' } },
        { spec: { strategy: '' } },
        { spec: { strategy: 'Not Valid' } },
      ]),
      mergePatch(`${leases}/min`, { spec: { holderIdentity: 'you', leaseTransitions: 1 } }),
      mergePatch(`${leases}/min`, { spec: { leaseDurationSeconds: -1 } }),
      columnsOf(leases),
      remove(`${leases}/min`),
    ],
  },
  {
    name: 'api services',
    steps: [
      get(`${apiServices}/v1.`),
      get(`${apiServices}/v1.apps`),
      get(`${apiServices}/v2.autoscaling`),
      post(apiServices, apiService),
      ...variants(apiServices, apiService, [
        { metadata: { name: 'other' } },
        { metadata: { name: 'v1.metrics.example.com.x' }, spec: null },
        { metadata: { name: 'Not.Valid' }, spec: { group: 'Valid', version: 'Not' } },
        { spec: { groupPriorityMinimum: 0, versionPriority: 0 } },
        { spec: { groupPriorityMinimum: 30000, versionPriority: 3000 } },
        { spec: { service: { namespace: '', name: '' } } },
        { spec: { service: { port: 70000 } } },
        { spec: { insecureSkipTLSVerify: false } },
        { spec: { caBundle: 'YQ==' } },
        { spec: { service: null } },
      ]),
      { sleepMs: 1000 },
      columnsOf(`${apiServices}/v1.metrics.example.com`),
      columnsOf(`${apiServices}/v1.apps`),
      mergePatch(`${apiServices}/v1.metrics.example.com`, { spec: { versionPriority: 5 } }),
      remove(`${apiServices}/v1.metrics.example.com`),
    ],
  },
  {
    name: 'flow control',
    steps: [
      columnsOf('/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas'),
      columnsOf('/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations'),
      get('/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all'),
      get('/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/system-nodes'),
      get('/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt'),
      get('/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/workload-low'),
    ],
  },
]
