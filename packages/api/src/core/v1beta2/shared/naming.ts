/** Templates for names of objects. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { nonEmpty } from './limits.ts'

export const machineNaming = s
  .object(
    {
      template: s
        .string({ minLength: 1, maxLength: 256 })
        .optional()
        .doc(
          'Go template with the variables .cluster.name, .machineSet.name and .random. It must contain {{ .random }}. Default: {{ .machineSet.name }}-{{ .random }}.',
        ),
    },
    nonEmpty,
  )
  .doc('How Machines are named.')
export interface MachineNaming extends Infer<typeof machineNaming> {}

export const naming = s
  .object(
    {
      template: s
        .string({ minLength: 1, maxLength: 1024 })
        .optional()
        .doc(
          'Go template with the variables .cluster.name and .random and, for workers, .machineDeployment.topologyName or .machinePool.topologyName. Default: these variables, .random last, joined by hyphens.',
        ),
    },
    nonEmpty,
  )
  .doc('How the objects of a topology are named.')
export interface Naming extends Infer<typeof naming> {}
