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
    bootstrap: s.object({
      configRef: contractReference.optional(),
      dataSecretName: s.string({ minLength: 0, maxLength: 253 }).optional(),
    }),
    clusterName: s.string({ minLength: 1, maxLength: 63 }),
    deletion: nodeDeletion.optional(),
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional(),
    infrastructureRef: contractReference,
    minReadySeconds: s.int32({ minimum: 0 }).optional(),
    providerID: s.string({ minLength: 1, maxLength: 512 }).optional(),
    readinessGates: conditionGates.optional(),
    taints: machineTaints.optional(),
    version: s.string({ minLength: 1, maxLength: 256 }).optional(),
  })
  .doc('What a Machine should be.')
export type MachineSpec = Infer<typeof machineSpec>

export const machineTemplate = s
  .object({
    metadata: objectMeta.optional(),
    spec: machineSpec,
  })
  .doc('What the Machines that are made look like.')
export type MachineTemplateSpec = Infer<typeof machineTemplate>
