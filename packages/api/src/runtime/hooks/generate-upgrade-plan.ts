import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** The hook that returns the steps of an upgrade. The ClusterClass names the handler in `spec.upgrade.external`. */
export const GenerateUpgradePlan = defineHook({
  name: 'GenerateUpgradePlan',
  tag: 'Chained Upgrade Hook',
  blocking: false,
  doc: 'Called when a Cluster is to be upgraded and its class names the handler. The response lists the versions of each upgrade step of the control plane and of the workers, in order. Each step of the control plane is at most one minor version, each of the workers at most three. Each list ends with the requested version, unless it is empty because the control plane or the workers need no upgrade. If the response lists no versions for workers that need an upgrade, they take the fewest possible steps.',
  request: {
    cluster: wireCluster,
    fromControlPlaneKubernetesVersion: s.string().doc('Current version of the control plane.'),
    fromWorkersKubernetesVersion: s.string().optional().doc('Current lowest version of the workers; absent when there are none.'),
    toKubernetesVersion: s.string().doc('Requested version: spec.topology.version.'),
  },
  response: { ...commonResponse, ...upgradeSteps },
})
