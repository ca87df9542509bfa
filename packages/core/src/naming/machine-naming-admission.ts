/**
 * Validates naming templates of Machines on admission, by rendering them. Upstream: core/webhooks/admission/machineset.go,
 * validateMSMachineNaming, v1.14.
 */
import { MachineDeployment, MachineSet } from '@capstan/api'
import { type Admission, admission, type FieldError, invalid, messageOf, seededRandom, subdomainProblems } from '@capstan/kube'
import { nameFromTemplate } from './generated-name.ts'

/** Admission of MachineSets and MachineDeployments that validates `spec.machineNaming.template`. */
export const machineNamingAdmission: readonly Admission[] = [
  admission<MachineSet>({ kind: MachineSet, validate: ({ spec }) => machineNamingErrors(spec.machineNaming?.template) }),
  admission<MachineDeployment>({
    kind: MachineDeployment,
    validate: ({ spec }) => machineNamingErrors(spec.machineNaming?.template),
  }),
]

/**
 * Validates `spec.machineNaming.template` by rendering it. Pure: uses sample names and fixed randomness. Another admission of both kinds,
 * in the package `api`, requires `{{ .random }}` in the template.
 */
export function machineNamingErrors(template: string | undefined): FieldError[] {
  if (template === undefined) return []
  const rejected = (problem: string) => [invalid('spec.machineNaming.template', template, `invalid template${problem}`)]
  try {
    const name = nameFromTemplate(template, { cluster: { name: 'cluster' }, machineSet: { name: 'machineset' } }, seededRandom(1))
    const problems = subdomainProblems(name)
    if (problems.length === 0) return []
    return rejected(`, generated names would not be valid Kubernetes object names: ${problems.join('; ')}`)
  } catch (err) {
    return rejected(`: ${messageOf(err)}`)
  }
}
