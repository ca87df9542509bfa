/** Scenarios of StorageClasses, CSIDrivers, CSINodes, VolumeAttachments, CSIStorageCapacities and VolumeAttributesClasses. */
import { columnsOf, get, mergePatch, post, remove, type Scenario, variants } from './step.ts'

const base = '/apis/storage.k8s.io/v1'
const objectOf = (kind: string, fields: object, name = 'min') => ({
  apiVersion: 'storage.k8s.io/v1',
  kind,
  metadata: { name },
  ...fields,
})
const classes = `${base}/storageclasses`
const storageClass = objectOf('StorageClass', { provisioner: 'example.com/p' })
const drivers = `${base}/csidrivers`
const driver = objectOf('CSIDriver', { spec: {} })
const nodes = `${base}/csinodes`
const node = objectOf('CSINode', { spec: { drivers: [{ name: 'd.example.com', nodeID: 'n-1' }] } })
const attachments = `${base}/volumeattachments`
const attachment = objectOf('VolumeAttachment', {
  spec: { attacher: 'd.example.com', nodeName: 'n', source: { persistentVolumeName: 'pv' } },
})
const capacities = `${base}/namespaces/default/csistoragecapacities`
const capacity = objectOf('CSIStorageCapacity', { storageClassName: 'fast' })
const attributesClasses = `${base}/volumeattributesclasses`
const attributesClass = objectOf('VolumeAttributesClass', { driverName: 'd.example.com', parameters: { iops: '100' } })

export const scenarios: readonly Scenario[] = [
  {
    name: 'storage classes',
    steps: [
      post(classes, storageClass),
      post(
        classes,
        objectOf(
          'StorageClass',
          {
            provisioner: 'example.com/p',
            parameters: { a: 'b' },
            reclaimPolicy: 'Retain',
            mountOptions: ['ro'],
            allowVolumeExpansion: true,
            volumeBindingMode: 'WaitForFirstConsumer',
            allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] }],
          },
          'max',
        ),
      ),
      post(classes, {
        ...storageClass,
        metadata: { name: 'default', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      }),
      ...variants(classes, storageClass, [
        { provisioner: null },
        { provisioner: 'not valid!' },
        { parameters: { '': 'x' } },
        { reclaimPolicy: 'Sometimes' },
        { reclaimPolicy: 'Recycle' },
        { volumeBindingMode: 'Sometimes' },
        { allowedTopologies: [{}] },
        { allowedTopologies: [{ matchLabelExpressions: [{ key: 'not valid!', values: [] }] }] },
        { allowedTopologies: [{ matchLabelExpressions: [{ key: 'a', values: ['x', 'x'] }] }] },
      ]),
      mergePatch(`${classes}/min`, {
        provisioner: 'other',
        parameters: { a: 'b' },
        reclaimPolicy: 'Retain',
        volumeBindingMode: 'WaitForFirstConsumer',
      }),
      mergePatch(`${classes}/min`, { allowVolumeExpansion: true, mountOptions: ['rw'] }),
      columnsOf(classes),
      remove(`${classes}/min`),
      remove(`${classes}/default`),
    ],
  },
  {
    name: 'csi drivers',
    steps: [
      post(drivers, driver),
      post(
        drivers,
        objectOf(
          'CSIDriver',
          {
            spec: {
              attachRequired: false,
              podInfoOnMount: true,
              volumeLifecycleModes: ['Ephemeral', 'Persistent'],
              storageCapacity: true,
              fsGroupPolicy: 'File',
              tokenRequests: [{ audience: 'a', expirationSeconds: 600 }],
              requiresRepublish: true,
              seLinuxMount: true,
              nodeAllocatableUpdatePeriodSeconds: 60,
            },
          },
          'max',
        ),
      ),
      ...variants(drivers, driver, [
        { metadata: { name: 'x'.repeat(64) } },
        { spec: { volumeLifecycleModes: ['Sometimes'] } },
        { spec: { fsGroupPolicy: 'Sometimes' } },
        { spec: { tokenRequests: [{ audience: 'a' }, { audience: 'a' }] } },
        { spec: { tokenRequests: [{ audience: 'a', expirationSeconds: 1 }] } },
        { spec: { nodeAllocatableUpdatePeriodSeconds: 1 } },
      ]),
      mergePatch(`${drivers}/min`, { spec: { attachRequired: false, podInfoOnMount: true } }),
      mergePatch(`${drivers}/min`, { spec: { requiresRepublish: true } }),
      columnsOf(drivers),
      remove(`${drivers}/min`),
    ],
  },
  {
    name: 'csi nodes',
    steps: [
      post(nodes, node),
      post(nodes, objectOf('CSINode', { spec: { drivers: [] } }, 'none')),
      post(
        nodes,
        objectOf(
          'CSINode',
          { spec: { drivers: [{ name: 'd.example.com', nodeID: 'n-2', topologyKeys: ['zone'], allocatable: { count: 10 } }] } },
          'max',
        ),
      ),
      ...variants(nodes, node, [
        { spec: { drivers: [{ name: 'd', nodeID: '' }] } },
        { spec: { drivers: [{ name: '', nodeID: 'a' }] } },
        { spec: { drivers: [{ name: 'd', nodeID: 'x'.repeat(193) }] } },
        {
          spec: {
            drivers: [
              { name: 'd', nodeID: 'a' },
              { name: 'd', nodeID: 'a' },
            ],
          },
        },
        { spec: { drivers: [{ name: 'd', nodeID: 'a', topologyKeys: ['a', 'a', 'not valid!'] }] } },
        { spec: { drivers: [{ name: 'd', nodeID: 'a', allocatable: { count: -1 } }] } },
      ]),
      mergePatch(`${nodes}/min`, { spec: { drivers: [{ name: 'd.example.com', nodeID: 'other' }] } }),
      mergePatch(`${nodes}/min`, { spec: { drivers: [] } }),
      columnsOf(nodes),
      remove(`${nodes}/min`),
    ],
  },
  {
    name: 'volume attachments',
    steps: [
      post(attachments, attachment),
      ...variants(attachments, attachment, [
        { spec: { attacher: null } },
        { spec: { nodeName: null } },
        { spec: { source: null } },
        { spec: { source: { persistentVolumeName: '' } } },
        { spec: { nodeName: 'Not Valid' } },
        { spec: { attacher: 'not valid!' } },
      ]),
      mergePatch(`${attachments}/min`, { spec: { nodeName: 'other' } }),
      mergePatch(`${attachments}/min/status`, { status: { attached: true, attachmentMetadata: { a: 'b' } } }),
      mergePatch(`${attachments}/min/status`, { status: { attachError: { message: 'no' } } }),
      columnsOf(attachments),
      remove(`${attachments}/min`),
    ],
  },
  {
    name: 'csi storage capacities',
    steps: [
      post(capacities, capacity),
      post(
        capacities,
        objectOf(
          'CSIStorageCapacity',
          { storageClassName: 'fast', capacity: '10Gi', maximumVolumeSize: '1Gi', nodeTopology: { matchLabels: { zone: 'a' } } },
          'max',
        ),
      ),
      ...variants(capacities, capacity, [
        { storageClassName: null },
        { storageClassName: 'Not_Valid' },
        { capacity: '-1' },
        { maximumVolumeSize: '-1' },
        { nodeTopology: { matchLabels: { a: 'not valid!' } } },
      ]),
      mergePatch(`${capacities}/min`, { storageClassName: 'other', nodeTopology: { matchLabels: { zone: 'b' } } }),
      mergePatch(`${capacities}/min`, { capacity: '2Gi' }),
      columnsOf(capacities),
      remove(`${capacities}/min`),
    ],
  },
  {
    name: 'volume attributes classes',
    steps: [
      post(attributesClasses, attributesClass),
      ...variants(attributesClasses, attributesClass, [
        { driverName: null },
        { driverName: 'not valid!' },
        { parameters: null },
        { parameters: { '': 'x', iops: null } },
      ]),
      mergePatch(`${attributesClasses}/min`, { driverName: 'other', parameters: { iops: '200' } }),
      columnsOf(attributesClasses),
      get(`${attributesClasses}/min`),
      remove(`${attributesClasses}/min`),
    ],
  },
]
