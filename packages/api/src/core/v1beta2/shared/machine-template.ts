/** Spec of a Machine, and the template of Machines in MachineSets, MachineDeployments and MachinePools. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { clusterName, failureDomain, minReadySeconds } from './common-fields.ts'
import { conditionGates } from './condition-gates.ts'
import { shortText } from './limits.ts'
import { machineDeletion } from './machine-deletion.ts'
import { machineTaints } from './machine-taints.ts'
import { objectMeta } from './object-meta.ts'
import { contractReference } from './references.ts'

const bootstrap = s
  .object({
    configRef: contractReference
      .optional()
      .doc('The provider object that creates the bootstrap data; in a MachineSet or MachineDeployment, its template.'),
    dataSecretName: s
      .string({ minLength: 0, maxLength: 253 })
      .optional()
      .doc('Name of the Secret with the bootstrap data, under the key `value`.'),
  })
  .doc('Source of the bootstrap data: a bootstrap config that creates it, or the Secret that contains it.')

export const machineSpec = s
  .object({
    clusterName,
    version: s.string(shortText).optional().doc('Kubernetes version of the Node.'),
    bootstrap,
    infrastructureRef: contractReference,
    providerID: s
      .string({ minLength: 1, maxLength: 512 })
      .optional()
      .doc('Identifies the machine at its provider. Core copies it from the infrastructure object, and finds the Node by it.'),
    failureDomain,
    minReadySeconds,
    readinessGates: conditionGates.optional(),
    deletion: machineDeletion.optional(),
    taints: machineTaints.optional(),
  })
  .doc('Desired state of a Machine.')
export interface MachineSpec extends Infer<typeof machineSpec> {}

export const machineTemplate = s
  .object({ metadata: objectMeta.optional(), spec: machineSpec.doc('Spec of the Machines.') })
  .doc('Template of the Machines.')
export interface MachineTemplateSpec extends Infer<typeof machineTemplate> {
  spec: MachineSpec
}
