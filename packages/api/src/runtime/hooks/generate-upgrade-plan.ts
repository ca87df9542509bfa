import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Asks which versions an upgrade passes. The ClusterClass names the handler: `spec.upgrade.external`. */
export const GenerateUpgradePlan = defineHook({
  name: 'GenerateUpgradePlan',
  tag: 'Chained Upgrade Hook',
  blocking: false,
  doc: 'Called when a Cluster is to be upgraded and its class names the handler. The answer lists the versions that control plane and workers pass, in order. Each step of the control plane is at most one minor version, each of the workers at most three; both end with the version asked for. Without versions for the workers they take as few as they can.',
  request: {
    cluster: wireCluster,
    fromControlPlaneKubernetesVersion: s.string().doc('Version of the control plane now.'),
    fromWorkersKubernetesVersion: s.string().optional().doc('Lowest version of the workers now; absent when there are none.'),
    toKubernetesVersion: s.string().doc('Version that the topology asks for.'),
  },
  response: { ...commonResponse, ...upgradeSteps },
})
