/** Fields that several kinds have in common. */
import { s } from '@capstan/kube'
import { shortText } from './limits.ts'

export const clusterName = s
  .string({ minLength: 1, maxLength: 63 })
  .doc('Name of the Cluster that the object belongs to. It cannot change.')

export const failureDomain = s
  .string(shortText)
  .optional()
  .doc('Failure domain in which Machines are placed: one of those in the status of the Cluster.')

export const minReadySeconds = s
  .int32({ minimum: 0 })
  .optional()
  .doc(
    'Seconds for which a Machine must be Ready before it counts as Available. Default: 0; in the topology of a Cluster, the value of the class.',
  )

export const observedGeneration = s.int64({ minimum: 1 }).optional().doc('The metadata.generation that was reconciled last.')

export const phase = <const Phases extends readonly string[]>(...phases: Phases) =>
  s
    .enum(...phases)
    .optional()
    .doc('Phase of the lifecycle, for people to read. Programs should read conditions.')
