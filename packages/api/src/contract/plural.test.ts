import { expect, test } from 'vitest'
import { pluralOf } from './plural.ts'

test.each([
  ['LocalCluster', 'localclusters'],
  ['AWSClusterControllerIdentity', 'awsclustercontrolleridentities'],
  ['ClusterClass', 'clusterclasses'],
  ['NetworkPolicy', 'networkpolicies'],
  ['MachineProxy', 'machineproxies'],
  ['Gateway', 'gateways'],
  ['HostPatch', 'hostpatches'],
  ['Box', 'boxes'],
  ['Status', 'statuses'],
  ['VolumeIndex', 'volumeindices'],
  ['KubeadmConfigs', 'kubeadmconfigs'],
])('the plural of %s is %s', (kind, plural) => {
  expect(pluralOf(kind)).toBe(plural)
})
