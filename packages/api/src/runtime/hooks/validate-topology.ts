import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { templateItem, wireVariables } from './topology-items.ts'

/**
 * The hook that validates the patched templates of a topology. The ClusterClass names the handler in
 * `spec.patches[].external.validateTopologyExtension`.
 */
export const ValidateTopology = defineHook({
  name: 'ValidateTopology',
  tag: 'Topology Mutation Hook',
  blocking: false,
  doc: 'Called after all patches of the class were applied, for each patch that names a handler of this hook. Failure rejects the topology: no object of the topology is changed, and the message is in the condition TopologyReconciled.',
  request: {
    variables: wireVariables.optional().doc('Variables of the Cluster that belong to the patch, and `builtin`.'),
    items: s.list(s.object(templateItem)),
  },
  response: commonResponse,
})
