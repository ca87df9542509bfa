import { MachineCertificatesExpiryDateAnnotation, MachineControlPlaneLabel } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { type KubeObject, timestamp } from '@capstan/kube'
import { externalOf } from '../external/observed.ts'
import type { MachinePhase } from './scope.ts'

/** Reports when the certificates of a control plane Machine expire, from the annotation of the Machine or else of its bootstrap config. */
export const certificateExpiry: MachinePhase = async ({ machine, bootstrap }) => {
  if (machine.metadata.labels?.[MachineControlPlaneLabel] === undefined) return proceed()
  const annotated = [machine, externalOf(bootstrap)?.object].find((object) => annotationOf(object) !== undefined)
  const text = annotationOf(annotated)
  if (annotated === undefined || text === undefined) {
    delete machine.status?.certificatesExpiryDate
    return proceed()
  }
  const expiry = parseTime(text)
  if (expiry === undefined) {
    throw new Error(
      `Cannot read annotation ${MachineCertificatesExpiryDateAnnotation} of ${annotated.kind} ${annotated.metadata.name}: ${JSON.stringify(text)} is not a time such as 2030-02-28T23:00:00Z`,
    )
  }
  const status = (machine.status ??= {})
  status.certificatesExpiryDate = timestamp(expiry)
  return proceed()
}

const annotationOf = (object: KubeObject | undefined): string | undefined =>
  object?.metadata.annotations?.[MachineCertificatesExpiryDateAnnotation]

/**
 * Parses a time such as `2030-02-28T23:00:00.5+01:00`; returns `undefined` for other texts. `Date.parse` alone accepts days that do not
 * exist, and the hour 24.
 */
function parseTime(text: string): number | undefined {
  const [, date, hour] = /^(\d{4}-\d\d-\d\d)T(\d\d):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.exec(text) ?? []
  const time = Date.parse(text)
  if (date === undefined || hour === '24' || Number.isNaN(time)) return undefined
  return new Date(date).toISOString().startsWith(date) ? time : undefined
}
