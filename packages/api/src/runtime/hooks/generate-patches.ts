import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { templateItem, wireVariables } from './topology-items.ts'
import { patchDocument, patchType } from './wire-patch.ts'

/** The hook that returns patches for the templates of a topology. The ClusterClass names the handler in `spec.patches[].external`. */
export const GeneratePatches = defineHook({
  name: 'GeneratePatches',
  tag: 'Topology Mutation Hook',
  blocking: false,
  doc: 'Called whenever the topology of a Cluster is computed, for each patch of the class that names a handler, in the order of the class. The response changes spec, labels and annotations of templates; patches of other fields are ignored. The response to equal requests must be equal: if it changes more than five times in ten minutes, the reconcile fails until two responses in sequence are equal or the request changes.',
  request: {
    variables: wireVariables.optional().doc('Variables of the Cluster that belong to the patch, and `builtin`.'),
    items: s.list(s.object({ uid: s.string().doc('Identifies the template in the response.'), ...templateItem })),
  },
  response: {
    ...commonResponse,
    items: s
      .list(s.object({ uid: s.string().doc('As in the request.'), patchType, patch: patchDocument }))
      .optional()
      .doc('Templates without an item stay unchanged; several patches of one template are applied in order.'),
  },
})
