/** Spec of a Machine, and the template that sets and deployments hold of it. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { conditionGates } from './condition-gates.ts'
import { nodeDeletion } from './machine-deletion.ts'
import { machineTaints } from './machine-taints.ts'
import { objectMeta } from './object-meta.ts'
import { contractReference } from './references.ts'

export const machineSpec = s
  .object({
    bootstrap: s
      .object({
        configRef: contractReference.optional().doc('The provider object that makes the bootstrap data.'),
        dataSecretName: s
          .string({ minLength: 0, maxLength: 253 })
          .optional()
          .doc('Name of the Secret with the bootstrap data, under the key `value`.'),
      })
      .doc('Where the bootstrap data comes from: a config that makes it, or the Secret that holds it.'),
    clusterName: s.string({ minLength: 1, maxLength: 63 }).doc('Name of the Cluster it belongs to. It cannot change.'),
    deletion: nodeDeletion.optional(),
    failureDomain: s
      .string({ minLength: 1, maxLength: 256 })
      .optional()
      .doc('Where Machines are placed, among the failure domains of the Cluster.'),
    infrastructureRef: contractReference,
    minReadySeconds: s
      .int32({ minimum: 0 })
      .optional()
      .doc('How long a Machine must be Ready before it counts as Available; 0 when absent.'),
    providerID: s
      .string({ minLength: 1, maxLength: 512 })
      .optional()
      .doc('Names the host among all of its provider: core copies it from the infrastructure, and finds the Node by it.'),
    readinessGates: conditionGates.optional(),
    taints: machineTaints.optional(),
    version: s.string({ minLength: 1, maxLength: 256 }).optional().doc('Kubernetes version of the Node.'),
  })
  .doc('What a Machine should be.')
export type MachineSpec = Infer<typeof machineSpec>

export const machineTemplate = s
  .object({
    metadata: objectMeta.optional(),
    spec: machineSpec.doc('Spec of the Machines.'),
  })
  .doc('What the Machines that are made look like.')
export type MachineTemplateSpec = Infer<typeof machineTemplate>
