/**
 * Scenarios of Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions: requests to which
 * `interop/recordings/record-golden.ts` records the responses of a real kube-apiserver.
 */
import {
  apply,
  columnsOf,
  get,
  jsonPatch,
  merged,
  mergePatch,
  post,
  put,
  remove,
  type Scenario,
  strategicPatch,
  variants,
} from './step.ts'

const base = '/apis/apps/v1/namespaces/default'
const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'nginx' }] },
}
const selector = { matchLabels: { app: 'web' } }
const object = (kind: string, spec: object, name = 'min') => ({ apiVersion: 'apps/v1', kind, metadata: { name }, spec })
const large = {
  metadata: { labels: { app: 'web', tier: 'front' } },
  spec: {
    nodeSelector: { disk: 'ssd', arch: 'amd64' },
    containers: [
      { name: 'a', image: 'nginx:1.29', ports: [{ containerPort: 80 }] },
      { name: 'b', image: 'busybox:latest', env: [{ name: 'X', value: '1' }] },
    ],
  },
}

/** Changes that make a Deployment, ReplicaSet, StatefulSet or DaemonSet invalid. */
const badSpecs = [
  { spec: { selector: null } },
  { spec: { selector: { matchLabels: null } } },
  { spec: { selector: { matchLabels: { app: 'other' } } } },
  { spec: { selector: { matchLabels: { app: 'not valid!' } } } },
  {
    spec: {
      selector: {
        matchExpressions: [
          { key: 'app', operator: 'In' },
          { key: 'b', operator: 'Sometimes' },
        ],
      },
    },
  },
  { spec: { template: null } },
  { spec: { template: { spec: { containers: null } } } },
  { spec: { template: { spec: { containers: [{ name: 'c' }] } } } },
  { spec: { template: { spec: { restartPolicy: 'Never' } } } },
  { spec: { template: { spec: { activeDeadlineSeconds: 5 } } } },
  { spec: { replicas: -1, minReadySeconds: -1, revisionHistoryLimit: -1 } },
  { spec: null },
]

const deployment = object('Deployment', { selector, template })
const deployments = `${base}/deployments`
const replicaSet = object('ReplicaSet', { selector, template })
const replicaSets = `${base}/replicasets`
const statefulSet = object('StatefulSet', { selector, template, serviceName: 'web' })
const statefulSets = `${base}/statefulsets`
const daemonSet = object('DaemonSet', { selector, template })
const daemonSets = `${base}/daemonsets`
const revision = {
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: { name: 'min' },
  data: { spec: { a: 1 } },
  revision: 1,
}
const revisions = `${base}/controllerrevisions`

export const scenarios: readonly Scenario[] = [
  {
    name: 'deployments',
    steps: [
      post(deployments, deployment),
      post(
        deployments,
        merged(
          object(
            'Deployment',
            {
              replicas: 3,
              paused: true,
              minReadySeconds: 5,
              revisionHistoryLimit: 0,
              progressDeadlineSeconds: 60,
              strategy: { rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } },
              selector: {
                matchLabels: { app: 'web' },
                matchExpressions: [{ key: 'tier', operator: 'In', values: ['front', 'back'] }],
              },
              template: large,
            },
            'max',
          ),
          { metadata: { labels: { a: 'b' } }, status: { replicas: 9 } },
        ),
      ),
      post(deployments, object('Deployment', { selector, template, strategy: { type: 'Recreate' } }, 'recreate')),
      post(deployments, merged(deployment, { metadata: { name: 'dotted.name' } })),
      ...variants(deployments, deployment, [
        ...badSpecs,
        { spec: { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } } },
        { spec: { strategy: { type: 'Sometimes' } } },
        { spec: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } } },
        { spec: { strategy: { rollingUpdate: { maxSurge: '0%', maxUnavailable: '0%' } } } },
        { spec: { strategy: { rollingUpdate: { maxSurge: 'many', maxUnavailable: '150%' } } } },
        { spec: { strategy: { rollingUpdate: { maxSurge: -1 } } } },
        { spec: { progressDeadlineSeconds: 5, minReadySeconds: 5 } },
        { spec: { progressDeadlineSeconds: -5 } },
        { spec: { replicas: 'three' } },
        { metadata: { name: 'Not_A_Name' } },
      ]),
      mergePatch(`${deployments}/min`, { spec: { selector: { matchLabels: { app: 'other' } } } }),
      mergePatch(`${deployments}/min`, { spec: { replicas: 2 } }),
      mergePatch(`${deployments}/min`, { metadata: { annotations: { note: 'x' } } }),
      mergePatch(`${deployments}/min`, { metadata: { labels: { note: 'x' } } }),
      mergePatch(`${deployments}/min`, { spec: { replicas: null } }),
      strategicPatch(`${deployments}/min`, {
        spec: {
          template: {
            spec: {
              containers: [
                { name: 'c', image: 'nginx:2' },
                { name: 'd', image: 'busybox' },
              ],
            },
          },
        },
      }),
      strategicPatch(`${deployments}/min`, {
        spec: { $retainKeys: ['strategy'], strategy: { $retainKeys: ['type'], type: 'Recreate' } },
      }),
      mergePatch(`${deployments}/min/status`, {
        status: {
          observedGeneration: 4,
          replicas: 1,
          updatedReplicas: 1,
          readyReplicas: 1,
          availableReplicas: 1,
          conditions: [
            { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: 'ok' },
            { type: 'Progressing', status: 'True' },
          ],
        },
        spec: { replicas: 7 },
        metadata: { labels: { fromStatus: 'yes' }, annotations: { fromStatus: 'yes' } },
      }),
      mergePatch(`${deployments}/min/status`, {
        status: {
          replicas: 1,
          updatedReplicas: 2,
          readyReplicas: 3,
          availableReplicas: 4,
          unavailableReplicas: -1,
          collisionCount: -1,
        },
      }),
      mergePatch(`${deployments}/min/status`, { status: { collisionCount: 3 } }),
      mergePatch(`${deployments}/min/status`, { status: { collisionCount: 2 } }),
      get(`${deployments}/min/scale`),
      get(`${deployments}/max/scale`),
      mergePatch(`${deployments}/min/scale`, { spec: { replicas: 7 } }),
      put(`${deployments}/min/scale`, {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name: 'min', namespace: 'default' },
        spec: { replicas: 4 },
      }),
      mergePatch(`${deployments}/min/scale`, { spec: { replicas: -7 } }),
      put(`${deployments}/min/scale`, {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name: 'other', namespace: 'default' },
        spec: { replicas: 4 },
      }),
      mergePatch(`${deployments}/none/scale`, { spec: { replicas: 7 } }),
      apply(`${deployments}/applied`, merged(deployment, { metadata: { name: 'applied' } })),
      apply(`${deployments}/applied`, merged(deployment, { metadata: { name: 'applied' }, spec: { replicas: 3 } })),
      columnsOf(deployments),
      get(`${deployments}?fieldSelector=metadata.name%3Dmin,metadata.namespace%3Ddefault&labelSelector=none`),
      get(`${deployments}?fieldSelector=status.replicas%3D1`),
      put(`${deployments}/max`, merged(deployment, { metadata: { name: 'max' } })),
      put(`${deployments}/recreate`, merged(deployment, { metadata: { name: 'recreate' } })),
      remove(`${deployments}/min`),
      remove(`${deployments}/max`, { propagationPolicy: 'Foreground' }),
    ],
  },
  {
    name: 'replica sets',
    steps: [
      post(replicaSets, replicaSet),
      post(replicaSets, object('ReplicaSet', { replicas: 0, minReadySeconds: 3, selector, template: large }, 'max')),
      ...variants(replicaSets, replicaSet, badSpecs),
      mergePatch(`${replicaSets}/min`, { spec: { selector: { matchLabels: { app: 'other' } } } }),
      mergePatch(`${replicaSets}/min`, { spec: { replicas: 2 } }),
      mergePatch(`${replicaSets}/min`, { metadata: { annotations: { note: 'x' } } }),
      mergePatch(`${replicaSets}/min/status`, {
        status: { replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1, observedGeneration: 2 },
      }),
      mergePatch(`${replicaSets}/min/status`, {
        status: { replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 3, availableReplicas: 4, observedGeneration: -1 },
      }),
      mergePatch(`${replicaSets}/min/scale`, { spec: { replicas: 7 } }),
      columnsOf(replicaSets),
      get(`${replicaSets}?fieldSelector=status.replicas%3D5`),
      get(`${replicaSets}?fieldSelector=spec.replicas%3D5`),
      remove(`${replicaSets}/min`),
    ],
  },
  {
    name: 'stateful sets',
    steps: [
      post(statefulSets, statefulSet),
      {
        ...post(
          statefulSets,
          object(
            'StatefulSet',
            {
              replicas: 3,
              serviceName: 'db',
              podManagementPolicy: 'Parallel',
              minReadySeconds: 2,
              revisionHistoryLimit: 3,
              ordinals: { start: 5 },
              updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } },
              persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' },
              selector,
              template: merged(large, {
                spec: { containers: [{ name: 'a', image: 'db', volumeMounts: [{ name: 'data', mountPath: '/d' }] }] },
              }),
              volumeClaimTemplates: [
                {
                  metadata: { name: 'data', labels: { a: 'b' } },
                  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
                },
              ],
            },
            'max',
          ),
        ),
        save: { owner: 'metadata.uid' },
      },
      post(statefulSets, object('StatefulSet', { selector, template, updateStrategy: { type: 'OnDelete' } }, 'ondelete')),
      ...variants(statefulSets, statefulSet, [
        ...badSpecs,
        { metadata: { name: 'dotted.name' } },
        { spec: { podManagementPolicy: 'Sometimes' } },
        { spec: { updateStrategy: { type: 'Sometimes' } } },
        { spec: { updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } } },
        { spec: { updateStrategy: { rollingUpdate: { partition: -1 } } } },
        { spec: { serviceName: 'Not_Valid' } },
        { spec: { ordinals: { start: -1 } } },
        { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Keep', whenScaled: 'Keep' } } },
        { spec: { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }] } },
      ]),
      mergePatch(`${statefulSets}/min`, { spec: { serviceName: 'other' } }),
      mergePatch(`${statefulSets}/min`, { spec: { replicas: 2, minReadySeconds: 1 } }),
      mergePatch(`${statefulSets}/min/status`, {
        status: {
          replicas: 2,
          readyReplicas: 1,
          currentReplicas: 1,
          updatedReplicas: 1,
          availableReplicas: 1,
          observedGeneration: 2,
        },
      }),
      mergePatch(`${statefulSets}/min/status`, {
        status: {
          replicas: 1,
          readyReplicas: 3,
          currentReplicas: 3,
          updatedReplicas: 3,
          availableReplicas: 4,
          collisionCount: -1,
        },
      }),
      mergePatch(`${statefulSets}/min/scale`, { spec: { replicas: 7 } }),
      columnsOf(statefulSets),
      remove(`${statefulSets}/min`),
    ],
  },
  {
    name: 'daemon sets',
    steps: [
      post(daemonSets, daemonSet),
      post(
        daemonSets,
        object(
          'DaemonSet',
          {
            selector,
            template: large,
            minReadySeconds: 2,
            updateStrategy: { rollingUpdate: { maxSurge: '10%', maxUnavailable: 0 } },
          },
          'max',
        ),
      ),
      post(daemonSets, object('DaemonSet', { selector, template, updateStrategy: { type: 'OnDelete' } }, 'ondelete')),
      ...variants(daemonSets, daemonSet, [
        ...badSpecs,
        { spec: { updateStrategy: { type: 'Sometimes' } } },
        { spec: { updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } } },
        { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } } },
        { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: '101%' } } } },
      ]),
      mergePatch(`${daemonSets}/min`, { spec: { selector: { matchLabels: { app: 'other' } } } }),
      mergePatch(`${daemonSets}/min`, { spec: { template: { metadata: { annotations: { a: 'b' } } } } }),
      mergePatch(`${daemonSets}/min`, { spec: { minReadySeconds: 4 } }),
      mergePatch(`${daemonSets}/min/status`, {
        status: {
          currentNumberScheduled: 2,
          numberMisscheduled: 0,
          desiredNumberScheduled: 3,
          numberReady: 1,
          updatedNumberScheduled: 2,
          numberAvailable: 1,
          observedGeneration: 2,
        },
      }),
      mergePatch(`${daemonSets}/min/status`, { status: { currentNumberScheduled: -1, numberReady: -1, numberUnavailable: -1 } }),
      mergePatch(`${daemonSets}/min/scale`, { spec: { replicas: 7 } }),
      columnsOf(daemonSets),
      remove(`${daemonSets}/min`),
    ],
  },
  {
    name: 'controller revisions',
    steps: [
      post(revisions, revision),
      ...variants(revisions, revision, [{ revision: -1 }, { data: null }, { revision: null, metadata: { name: 'ok' } }]),
      mergePatch(`${revisions}/min`, { data: { spec: { a: 2 } } }),
      jsonPatch(`${revisions}/min`, [{ op: 'replace', path: '/revision', value: 3 }]),
      // Unstable, because a key of managedFields contains the uid of the owner.
      {
        ...mergePatch(`${revisions}/min`, {
          revision: 2,
          metadata: {
            ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'max', uid: '{{owner}}', controller: true }],
          },
        }),
        unstable: true,
      },
      columnsOf(revisions),
      remove(`${revisions}/min`),
    ],
  },
]
