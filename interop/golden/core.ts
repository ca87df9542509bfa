/** Requests for the kinds of `v1`: defaults, rejected and allowed changes, server-side apply, and the output of `kubectl get`. */
import { apply, columnsOf, get, mergePatch, post, put, remove, type Scenario, type Step, strategicPatch } from './step.ts'

const ns = '/api/v1/namespaces/core'
const prepare = (path: string, body: object): Step => ({ prepare: { method: 'POST', path, body } })

export const scenarios: readonly Scenario[] = [
  {
    name: 'a namespace',
    steps: [
      prepare('/api/v1/namespaces', { metadata: { name: 'core' } }),
      { sleepMs: 500 },
      prepare(`${ns}/serviceaccounts`, { metadata: { name: 'default' } }),
      get('/api/v1/namespaces/core'),
    ],
  },
  {
    name: 'a service account',
    steps: [
      post(`${ns}/serviceaccounts`, { metadata: { name: 'sa' } }),
      post(`${ns}/pods`, {
        metadata: { name: 'nobody' },
        spec: { serviceAccountName: 'nobody', containers: [{ name: 'a', image: 'i' }] },
      }),
    ],
  },
  {
    name: 'pods: defaults and validation errors',
    steps: [
      post(`${ns}/pods`, { metadata: { name: 'p1' }, spec: { containers: [{ name: 'a', image: 'nginx' }] } }),
      post(`${ns}/pods`, {
        metadata: { name: 'p2' },
        spec: {
          containers: [
            {
              name: 'a',
              image: 'nginx:1.2',
              resources: { limits: { cpu: '0.5', memory: '1024Mi' } },
              ports: [{ containerPort: 80 }],
              livenessProbe: { httpGet: { port: 80 } },
              env: [
                { name: 'X', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                { name: 'Y', value: '' },
              ],
              volumeMounts: [{ name: 'v', mountPath: '/v' }],
            },
          ],
          volumes: [
            { name: 'v' },
            { name: 's', secret: { secretName: 'x' } },
            { name: 'h', hostPath: { path: '/x' } },
            { name: 'c', configMap: { name: 'm', items: [{ key: 'k', path: 'p' }] } },
            { name: 'd', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
          ],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'p3' },
        spec: {
          containers: [{ name: 'a', image: 'n@sha256:abc', ports: [{ containerPort: 80, name: 'http' }] }],
          hostNetwork: true,
          initContainers: [{ name: 'i', image: 'b', restartPolicy: 'Always' }],
          tolerations: [{ operator: 'Exists' }],
          terminationGracePeriodSeconds: 5,
        },
      }),
      post(`${ns}/pods`, { metadata: { name: 'e1' }, spec: { containers: [] } }),
      post(`${ns}/pods`, { metadata: { name: 'e2' }, spec: { containers: [{ name: 'a' }] } }),
      post(`${ns}/pods`, {
        metadata: { name: 'e3' },
        spec: {
          containers: [
            { name: 'a', image: 'x' },
            { name: 'a', image: 'y' },
          ],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e4' },
        spec: {
          containers: [
            {
              name: 'a',
              image: 'x',
              ports: [
                { containerPort: 0 },
                { containerPort: 70000, name: 'TOOLONGNAMEFORAPORT--' },
                { containerPort: 80, protocol: 'FOO', hostPort: -1 },
              ],
            },
          ],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e5' },
        spec: {
          containers: [
            {
              name: 'a',
              image: 'x',
              volumeMounts: [
                { name: 'nope', mountPath: '' },
                { name: '', mountPath: '/x', subPath: '../y' },
              ],
            },
          ],
          volumes: [{ name: 'A' }, { name: 'b', emptyDir: {}, hostPath: { path: '' } }, { name: 'b' }],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e6' },
        spec: {
          containers: [
            {
              name: 'a',
              image: 'x',
              livenessProbe: {},
              readinessProbe: { exec: { command: [] }, tcpSocket: { port: 'x y' } },
              startupProbe: { httpGet: { port: 0, scheme: 'FTP' }, successThreshold: 3 },
            },
          ],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e7' },
        spec: {
          containers: [
            {
              name: 'a',
              image: 'x',
              resources: { requests: { cpu: '2', foo: '1', memory: '-1' }, limits: { cpu: '1', 'example.com/gpu': '1.5' } },
            },
          ],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e8' },
        spec: {
          containers: [
            {
              name: 'a',
              image: 'x',
              env: [
                { name: '' },
                { name: 'A=B' },
                { name: 'C', value: 'x', valueFrom: { secretKeyRef: { name: '', key: '' } } },
                { name: 'D', valueFrom: {} },
                { name: 'E', valueFrom: { fieldRef: { fieldPath: 'spec.foo' } } },
              ],
              envFrom: [{}],
            },
          ],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e9' },
        spec: {
          containers: [{ name: 'a', image: 'nginx' }],
          restartPolicy: 'Foo',
          dnsPolicy: 'Bar',
          tolerations: [{ key: 'a b', operator: 'Foo', effect: 'X' }, { tolerationSeconds: 3 }],
          nodeSelector: { 'a b': 'c d' },
          priorityClassName: 'nope',
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e10' },
        spec: {
          containers: [{ name: 'a', image: 'nginx' }],
          restartPolicy: 'Foo',
          dnsPolicy: 'None',
          activeDeadlineSeconds: 0,
          hostname: 'A',
          subdomain: 'B',
          nodeName: 'C_',
          hostAliases: [{ ip: 'x', hostnames: ['Y_'] }],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e11' },
        spec: {
          containers: [{ name: 'a', image: 'nginx' }],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] },
              preferredDuringSchedulingIgnoredDuringExecution: [
                { weight: 0, preference: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
              ],
            },
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Foo' }] }, topologyKey: '' },
              ],
            },
          },
          topologySpreadConstraints: [{ maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'X' }],
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e12' },
        spec: {
          containers: [{ name: 'a', image: 'x', securityContext: { runAsUser: -5, seccompProfile: { type: 'Foo' } } }],
          securityContext: {
            runAsUser: -1,
            fsGroup: -2,
            seccompProfile: { type: 'Localhost' },
            sysctls: [{ name: 'A B', value: '' }],
          },
        },
      }),
      post(`${ns}/pods`, {
        metadata: { name: 'e13' },
        spec: {
          containers: [
            { name: 'a', image: ' x ', imagePullPolicy: 'Foo', terminationMessagePolicy: 'Bar', lifecycle: { preStop: {} } },
          ],
          initContainers: [{ name: 'a', image: 'x', livenessProbe: { exec: { command: ['x'] } } }],
          ephemeralContainers: [{ name: 'e', image: 'z' }],
        },
      }),
    ],
  },
  {
    name: 'pods: warnings, logs and bindings',
    steps: [
      post(`${ns}/pods`, {
        metadata: { name: 'w1', annotations: { 'scheduler.alpha.kubernetes.io/critical-pod': '' } },
        spec: {
          nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
          terminationGracePeriodSeconds: -1,
          imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}],
          hostAliases: [{ ip: '1.2.3.4' }, { ip: '1.2.3.4' }],
          containers: [
            {
              name: 'a',
              image: 'i:latest',
              env: [
                { name: 'A', value: '1' },
                { name: 'A', value: '$(A)2' },
                { name: 'A', value: '3' },
              ],
              ports: [
                { name: 'x', containerPort: 80 },
                { containerPort: 80, protocol: 'UDP' },
              ],
            },
            { name: 'b', image: 'reg:5000/i', ports: [{ name: 'x', containerPort: 80, hostPort: 81 }] },
          ],
          volumes: [{ name: 'g', gitRepo: { repository: 'r' } }],
          topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'beta.kubernetes.io/arch', whenUnsatisfiable: 'DoNotSchedule' }],
        },
      }),
      get(`${ns}/pods/w1/log`),
      get(`${ns}/pods/w1/log?container=a`),
      get(`${ns}/pods/w1/log?container=zz`),
      get(`${ns}/pods/w1/portforward`),
      get(`${ns}/pods/w1/proxy`),
      get(`${ns}/pods/nope/exec`),
      post(`${ns}/bindings`, { metadata: { name: 'w1' }, target: { kind: 'Foo' } }),
      post(`${ns}/bindings`, { metadata: { name: 'w1' }, target: { kind: 'Node', name: 'nowhere' } }),
      get(`${ns}/pods/w1/log?container=a`),
      get(`/api/v1/componentstatuses/etcd-0`),
      get(`/api/v1/componentstatuses/nope`),
    ],
  },
  {
    name: 'pods that are changed',
    steps: [
      strategicPatch(`${ns}/pods/p1`, { spec: { containers: [{ name: 'a', image: 'nginx:2' }] } }),
      strategicPatch(`${ns}/pods/p1`, { spec: { containers: [{ name: 'b', image: 'nginx:2' }] } }),
      strategicPatch(`${ns}/pods/p1`, { spec: { restartPolicy: 'Never' } }),
      strategicPatch(`${ns}/pods/p1`, { spec: { activeDeadlineSeconds: 100 } }),
      strategicPatch(`${ns}/pods/p1`, { spec: { activeDeadlineSeconds: 200 } }),
      mergePatch(`${ns}/pods/p1`, { spec: { tolerations: [{ key: 'x', operator: 'Exists' }] } }),
      mergePatch(`${ns}/pods/p1`, { metadata: { labels: { a: 'b' } } }),
      strategicPatch(`${ns}/pods/p1/status`, {
        status: {
          phase: 'Running',
          podIP: '1.2.3.4',
          conditions: [{ type: 'Ready', status: 'True' }],
          containerStatuses: [{ name: 'a', ready: true, restartCount: 1, image: 'x', imageID: '', state: { running: {} } }],
        },
      }),
      mergePatch(`${ns}/pods/p1/status`, { status: { phase: 'Foo', qosClass: 'Guaranteed', nominatedNodeName: '_x' } }),
      strategicPatch(`${ns}/pods/p1/ephemeralcontainers`, { spec: { ephemeralContainers: [{ name: 'e', image: 'z' }] } }),
      strategicPatch(`${ns}/pods/p1/ephemeralcontainers`, { spec: { ephemeralContainers: [{ name: 'e', image: 'y' }] } }),
      get(`${ns}/pods/p1/ephemeralcontainers`),
      strategicPatch(`${ns}/pods/p2/resize`, {
        spec: { containers: [{ name: 'a', resources: { requests: { cpu: '600m' }, limits: { cpu: '700m' } } }] },
      }),
      columnsOf(`${ns}/pods`),
      columnsOf(`${ns}/pods/p3`),
      post(`${ns}/pods/p3/binding`, { metadata: { name: 'p3' }, target: { name: 'n1' } }),
      get(`${ns}/pods/p3`),
      remove(`${ns}/pods/p3`),
      get(`${ns}/pods/p3`),
      remove(`${ns}/pods/p3?gracePeriodSeconds=2`),
      remove(`${ns}/pods/p3?gracePeriodSeconds=20`),
      remove(`${ns}/pods/p3?gracePeriodSeconds=0`),
      get(`${ns}/pods/p3`),
      remove(`${ns}/pods/p2`),
    ],
  },
  {
    name: 'services',
    steps: [
      post(`${ns}/services`, { metadata: { name: 's1' }, spec: { ports: [{ port: 80 }], selector: { a: 'b' } } }),
      post(`${ns}/services`, {
        metadata: { name: 's2' },
        spec: {
          type: 'NodePort',
          ports: [
            { port: 80, name: 'a' },
            { port: 80, protocol: 'UDP', name: 'b' },
          ],
        },
      }),
      post(`${ns}/services`, {
        metadata: { name: 's3' },
        spec: { type: 'LoadBalancer', ports: [{ port: 80, targetPort: 'http' }], externalTrafficPolicy: 'Local' },
      }),
      post(`${ns}/services`, { metadata: { name: 's4' }, spec: { clusterIP: 'None', selector: { a: 'b' } } }),
      post(`${ns}/services`, { metadata: { name: 's5' }, spec: { clusterIP: 'None' } }),
      post(`${ns}/services`, { metadata: { name: 's6' }, spec: { type: 'ExternalName', externalName: 'a.b.c.' } }),
      post(`${ns}/services`, { metadata: { name: 's7' }, spec: { sessionAffinity: 'ClientIP', ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 's8' }, spec: { externalIPs: ['1.2.3.4'], ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x1' }, spec: {} }),
      post(`${ns}/services`, { metadata: { name: 'x2' }, spec: { ports: [{ port: 0 }, { port: 70000, name: 'A' }] } }),
      post(`${ns}/services`, { metadata: { name: 'x3' }, spec: { type: 'Foo', ports: [{ port: 80 }], sessionAffinity: 'Bar' } }),
      post(`${ns}/services`, {
        metadata: { name: 'x4' },
        spec: { type: 'ExternalName', clusterIP: '10.0.0.9', ports: [{ port: 1 }] },
      }),
      post(`${ns}/services`, { metadata: { name: 'x5' }, spec: { clusterIP: '1.2.3.4', ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x6' }, spec: { clusterIP: 'foo', ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x8' }, spec: { type: 'NodePort', ports: [{ port: 1, nodePort: 80 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x9' }, spec: { ports: [{ port: 1, nodePort: 30001 }] } }),
      post(`${ns}/services`, {
        metadata: { name: 'x10' },
        spec: {
          ports: [
            { port: 1, protocol: 'TCP', name: 'a' },
            { port: 1, name: 'a' },
          ],
        },
      }),
      post(`${ns}/services`, {
        metadata: { name: 'x11' },
        spec: {
          externalIPs: ['127.0.0.1', 'x'],
          ports: [{ port: 1 }],
          loadBalancerSourceRanges: ['1.2.3.4'],
          allocateLoadBalancerNodePorts: true,
          loadBalancerClass: 'a b',
          healthCheckNodePort: 3,
          externalTrafficPolicy: 'Cluster',
        },
      }),
      post(`${ns}/services`, { metadata: { name: 'x12' }, spec: { ipFamilyPolicy: 'RequireDualStack', ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x13' }, spec: { ipFamilies: ['IPv6'], ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x14' }, spec: { ipFamilyPolicy: 'PreferDualStack', ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'x15' }, spec: { clusterIP: 'None', type: 'NodePort', ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: 'Bad_name' }, spec: { ports: [{ port: 1 }] } }),
      post(`${ns}/services`, { metadata: { name: '1abc' }, spec: { ports: [{ port: 1 }] } }),
      mergePatch(`${ns}/services/s1`, { spec: { clusterIP: '10.0.0.77' } }),
      mergePatch(`${ns}/services/s1`, { spec: { type: 'NodePort' } }),
      mergePatch(`${ns}/services/s1`, { spec: { type: 'ClusterIP' } }),
      mergePatch(`${ns}/services/s1`, { spec: { type: 'ExternalName', externalName: 'x.y' } }),
      mergePatch(`${ns}/services/s1`, { spec: { type: 'ClusterIP' } }),
      mergePatch(`${ns}/services/s3`, { spec: { type: 'ClusterIP' } }),
      strategicPatch(`${ns}/services/s2`, { spec: { ports: [{ port: 80, name: 'a', targetPort: 8080 }] } }),
      mergePatch(`${ns}/services/s2`, { spec: { ports: [{ port: 81 }] } }),
      mergePatch(`${ns}/services/s2/status`, { status: { loadBalancer: { ingress: [{ ip: '9.9.9.9' }] } } }),
      columnsOf(`${ns}/services`),
      remove(`${ns}/services/s1`),
      remove(`${ns}/services/s6`),
    ],
  },
  {
    name: 'endpoints, nodes, namespaces',
    steps: [
      post(`${ns}/endpoints`, {
        metadata: { name: 'ep' },
        subsets: [{ addresses: [{ ip: '1.2.3.4' }, { ip: '1.2.3.5' }], ports: [{ port: 80 }, { port: 81, name: 'b' }] }],
      }),
      post(`${ns}/endpoints`, {
        metadata: { name: 'ep' },
        subsets: [
          {
            addresses: [{ ip: '1.2.3.4' }, { ip: '1.2.3.5' }],
            ports: [
              { port: 80, name: 'a' },
              { port: 81, name: 'b' },
            ],
          },
          { notReadyAddresses: [{ ip: '1.1.1.1' }] },
        ],
      }),
      post(`${ns}/endpoints`, {
        metadata: { name: 'ep2' },
        subsets: [{ addresses: [], ports: [{ port: 0 }] }, { addresses: [{ ip: '127.0.0.1', hostname: 'A', nodeName: '_' }] }],
      }),
      columnsOf(`${ns}/endpoints`),
      post(`${ns}/endpoints`, { metadata: { name: 'ep3' } }),
      post('/api/v1/nodes', {
        metadata: { name: 'nn1' },
        spec: { podCIDR: '10.1.0.0/24', taints: [{ key: 'a', effect: 'NoExecute' }] },
        status: { capacity: { cpu: '4', memory: '1024Mi' }, addresses: [{ type: 'InternalIP', address: '1.2.3.4' }] },
      }),
      post('/api/v1/nodes', {
        metadata: { name: 'nn2' },
        spec: {
          podCIDRs: ['x'],
          taints: [
            { key: 'a b', effect: 'Foo', value: 'c d' },
            { key: 'x', effect: 'NoSchedule' },
            { key: 'x', effect: 'NoSchedule' },
          ],
        },
        status: { capacity: { cpu: '-4', pods: '1.5' } },
      }),
      mergePatch('/api/v1/nodes/nn1', { spec: { podCIDR: '10.2.0.0/24' } }),
      mergePatch('/api/v1/nodes/nn1', { spec: { unschedulable: true, taints: [] } }),
      mergePatch('/api/v1/nodes/nn1', { status: { phase: 'x' } }),
      strategicPatch('/api/v1/nodes/nn1/status', {
        status: {
          conditions: [{ type: 'Ready', status: 'False' }],
          nodeInfo: { kernelVersion: '5', architecture: 'arm64', kubeletVersion: 'v1' },
        },
      }),
      columnsOf('/api/v1/nodes/nn1'),
      remove('/api/v1/nodes/nn1'),
      post('/api/v1/namespaces', { metadata: { name: 'Bad' } }),
      post('/api/v1/namespaces', {
        metadata: { name: 'nsx', labels: { 'kubernetes.io/metadata.name': 'foo' } },
        spec: { finalizers: ['foo'] },
      }),
      post('/api/v1/namespaces', { metadata: { name: 'nsy' }, spec: { finalizers: ['a.b/c'] } }),
      mergePatch('/api/v1/namespaces/nsy', { spec: { finalizers: ['x.y/z'] } }),
      mergePatch('/api/v1/namespaces/nsy/status', { status: { phase: 'Foo' } }),
      put('/api/v1/namespaces/nsy/finalize', { metadata: { name: 'nsy' }, spec: { finalizers: ['zz'] } }),
    ],
  },
  {
    name: 'volumes and claims',
    steps: [
      post('/api/v1/persistentvolumes', {
        metadata: { name: 'vol' },
        spec: { capacity: { storage: '1024Mi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
      }),
      post('/api/v1/persistentvolumes', { metadata: { name: 'vola' }, spec: {} }),
      post('/api/v1/persistentvolumes', {
        metadata: { name: 'volb' },
        spec: {
          capacity: { storage: '0', foo: '1' },
          accessModes: ['Foo', 'ReadWriteOncePod', 'ReadWriteOnce'],
          hostPath: { path: '' },
          nfs: { server: '', path: 'x' },
          persistentVolumeReclaimPolicy: 'X',
          volumeMode: 'Y',
          storageClassName: '_',
          local: { path: '/x' },
        },
      }),
      mergePatch('/api/v1/persistentvolumes/vol', { spec: { hostPath: { path: '/y' } } }),
      mergePatch('/api/v1/persistentvolumes/vol', { spec: { volumeMode: 'Block' } }),
      mergePatch('/api/v1/persistentvolumes/vol', {
        spec: { persistentVolumeReclaimPolicy: 'Delete', claimRef: { name: 'c', namespace: 'x' } },
      }),
      mergePatch('/api/v1/persistentvolumes/vol/status', { status: { phase: 'Bound' } }),
      columnsOf('/api/v1/persistentvolumes/vol'),
      remove('/api/v1/persistentvolumes/vol'),
      post(`${ns}/persistentvolumeclaims`, {
        metadata: { name: 'c1' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          dataSource: { kind: 'PersistentVolumeClaim', name: 'q' },
        },
      }),
      post(`${ns}/persistentvolumeclaims`, { metadata: { name: 'c2' }, spec: {} }),
      post(`${ns}/persistentvolumeclaims`, {
        metadata: { name: 'c3' },
        spec: {
          accessModes: ['Foo'],
          resources: { requests: { storage: '-1' } },
          storageClassName: '_',
          volumeMode: 'X',
          dataSource: { kind: 'Foo', name: '' },
        },
      }),
      mergePatch(`${ns}/persistentvolumeclaims/c1`, { spec: { resources: { requests: { storage: '2Gi' } } } }),
      mergePatch(`${ns}/persistentvolumeclaims/c1`, { spec: { volumeName: 'v' } }),
      mergePatch(`${ns}/persistentvolumeclaims/c1/status`, {
        status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
      }),
      mergePatch(`${ns}/persistentvolumeclaims/c1`, { spec: { resources: { requests: { storage: '2Gi' } } } }),
      mergePatch(`${ns}/persistentvolumeclaims/c1`, { spec: { resources: { requests: { storage: '512Mi' } } } }),
      columnsOf(`${ns}/persistentvolumeclaims/c1`),
      remove(`${ns}/persistentvolumeclaims/c1`),
    ],
  },
  {
    name: 'replication controllers and pod templates',
    steps: [
      post(`${ns}/replicationcontrollers`, {
        metadata: { name: 'r1' },
        spec: { template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'a', image: 'nginx' }] } } },
      }),
      post(`${ns}/replicationcontrollers`, {
        metadata: { name: 'r2' },
        spec: {
          replicas: -1,
          selector: { x: 'y' },
          template: { metadata: { labels: { a: 'b' } }, spec: { containers: [], restartPolicy: 'Never' } },
        },
      }),
      post(`${ns}/replicationcontrollers`, { metadata: { name: 'r3' }, spec: {} }),
      get(`${ns}/replicationcontrollers/r1/scale`),
      mergePatch(`${ns}/replicationcontrollers/r1/scale`, { spec: { replicas: 3 } }),
      columnsOf(`${ns}/replicationcontrollers`),
      mergePatch(`${ns}/replicationcontrollers/r1/status`, { status: { replicas: 1, readyReplicas: 2 } }),
      strategicPatch(`${ns}/replicationcontrollers/r1`, {
        spec: { template: { spec: { containers: [{ name: 'a', image: 'y' }] } } },
      }),
      post(`${ns}/podtemplates`, {
        metadata: { name: 't1' },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'a', image: 'nginx' }] } },
      }),
      post(`${ns}/podtemplates`, {
        metadata: { name: 't2' },
        template: { metadata: { labels: { 'a b': 'b' } }, spec: { containers: [] } },
      }),
      columnsOf(`${ns}/podtemplates`),
      remove(`${ns}/podtemplates/t1`),
    ],
  },
  {
    name: 'limits and quotas',
    steps: [
      post(`${ns}/limitranges`, {
        metadata: { name: 'l1' },
        spec: {
          limits: [
            { type: 'Container', max: { cpu: '1' }, min: { cpu: '100m' }, default: { memory: '1Gi' } },
            { type: 'PersistentVolumeClaim', max: { storage: '2Gi' } },
          ],
        },
      }),
      post(`${ns}/limitranges`, {
        metadata: { name: 'l2' },
        spec: {
          limits: [
            { type: 'Foo' },
            { type: 'Pod', default: { cpu: '1' }, max: { cpu: '1' }, min: { cpu: '2' } },
            {
              type: 'Container',
              max: { foo: '1' },
              default: { cpu: '3' },
              defaultRequest: { cpu: '4' },
              min: { cpu: '5' },
              maxLimitRequestRatio: { cpu: '0.5' },
            },
            { type: 'PersistentVolumeClaim' },
          ],
        },
      }),
      columnsOf(`${ns}/limitranges`),
      post(`${ns}/pods`, { metadata: { name: 'lp1' }, spec: { containers: [{ name: 'a', image: 'nginx' }] } }),
      post(`${ns}/pods`, {
        metadata: { name: 'lp2' },
        spec: { containers: [{ name: 'a', image: 'x', resources: { limits: { cpu: '2' }, requests: { cpu: '50m' } } }] },
      }),
      post(`${ns}/persistentvolumeclaims`, {
        metadata: { name: 'c9' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
      }),
      remove(`${ns}/limitranges/l1`),
      post(`${ns}/resourcequotas`, {
        metadata: { name: 'q1' },
        spec: { hard: { pods: '3', cpu: '2', 'limits.cpu': '2', foo: '1' }, scopes: ['Foo', 'BestEffort', 'NotBestEffort'] },
      }),
      post(`${ns}/resourcequotas`, {
        metadata: { name: 'q2' },
        spec: { hard: { configmaps: '100', 'count/deployments.apps': '5' } },
      }),
      columnsOf(`${ns}/resourcequotas`),
      remove(`${ns}/resourcequotas/q2`),
    ],
  },
  {
    name: 'secrets, config maps, service accounts, events',
    steps: [
      post(`${ns}/secrets`, { metadata: { name: 's1' }, type: 'kubernetes.io/tls', data: {} }),
      post(`${ns}/secrets`, {
        metadata: { name: 's2' },
        type: 'kubernetes.io/dockerconfigjson',
        data: { '.dockerconfigjson': 'eA==' },
      }),
      post(`${ns}/secrets`, { metadata: { name: 's3' }, data: { 'a b': 'eA==', '..': 'eA==' }, immutable: true }),
      post(`${ns}/secrets`, { metadata: { name: 's4' }, stringData: { a: 'b' }, immutable: true }),
      mergePatch(`${ns}/secrets/s4`, { data: { a: 'eA==' } }),
      post(`${ns}/secrets`, { metadata: { name: 's5' }, data: { a: '%%' } }),
      post(`${ns}/secrets`, { metadata: { name: 's6' }, type: 'bootstrap.kubernetes.io/token' }),
      post(`${ns}/secrets`, { metadata: { name: 's7' }, type: 'kubernetes.io/ssh-auth' }),
      post(`${ns}/secrets`, { metadata: { name: 's8' }, type: 'kubernetes.io/basic-auth' }),
      mergePatch(`${ns}/secrets/s4`, { type: 'x' }),
      post(`${ns}/secrets`, { metadata: { name: 's9' }, data: {}, type: '' }),
      post(`${ns}/configmaps`, { metadata: { name: 'm1' }, data: { 'a b': 'x', c: null }, binaryData: { d: 'eA==' } }),
      post(`${ns}/configmaps`, { metadata: { name: 'm2' }, data: { d: 'x' }, binaryData: { d: 'eA==' } }),
      post(`${ns}/configmaps`, { metadata: { name: 'm3' }, data: { d: 1 } }),
      post(`${ns}/configmaps`, { metadata: { name: 'm4' }, data: {}, immutable: false }),
      post(`${ns}/configmaps?fieldValidation=Strict`, { metadata: { name: 'm5' }, dat: {} }),
      post(`${ns}/serviceaccounts`, {
        metadata: { name: 'sa1' },
        imagePullSecrets: [{ name: 'x' }],
        automountServiceAccountToken: false,
      }),
      columnsOf(`${ns}/serviceaccounts/sa1`),
      remove(`${ns}/serviceaccounts/sa1`),
      post(`${ns}/events`, { metadata: { name: 'ev1' }, involvedObject: { kind: 'Pod', name: 'x', namespace: 'zz' } }),
      post(`${ns}/events`, { metadata: { name: 'ev2' }, involvedObject: { kind: 'Node', name: 'x' } }),
      post('/api/v1/namespaces/default/events', {
        metadata: { name: 'evvol' },
        involvedObject: { kind: 'Node', name: 'x' },
        firstTimestamp: '2026-01-01T02:00:00.5+02:00',
        eventTime: '2026-01-01T02:00:00.5+02:00',
        reportingComponent: 'a',
        reportingInstance: 'b',
        action: 'c',
        reason: 'd',
        type: 'Normal',
      }),
      post('/api/v1/namespaces/default/events', {
        metadata: { name: 'evxvol' },
        involvedObject: { kind: 'Node', name: 'x' },
        eventTime: '2026-01-01T02:00:00.5+02:00',
      }),
    ],
  },
  {
    name: 'server-side apply',
    steps: [
      apply(`${ns}/configmaps/ap`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ap' }, data: { a: 'b' } }),
      apply(`${ns}/services/aps`, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'aps' },
        spec: { ports: [{ port: 80 }, { port: 81, name: 'b', protocol: 'UDP' }] },
      }),
      apply(`${ns}/services/aps`, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'aps' },
        spec: {
          ports: [
            { port: 80, name: 'a' },
            { port: 81, name: 'b', protocol: 'UDP' },
          ],
        },
      }),
      apply(`${ns}/services/aps`, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'aps' },
        spec: { ports: [{ port: 80, name: 'z' }] },
      }),
      apply(`${ns}/pods/app`, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'app' },
        spec: { containers: [{ name: 'a', image: 'x', ports: [{ containerPort: 80 }], env: [{ name: 'Z', value: 'z' }] }] },
      }),
      apply(`${ns}/pods/app`, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'app' },
        spec: { containers: [{ name: 'a', image: 'y', foo: 'bar' }] },
      }),
    ],
  },
]
