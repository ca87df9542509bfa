/** Naming templates of Machines are tried out on admission. Upstream: core/webhooks/admission/machineset.go, validateMachineNaming, v1.14. */
import { MachineDeployment, MachineSet } from '@capstan/api'
import { type Admission, admission, type FieldError, invalid, messageOf, seededRandom, subdomainProblems } from '@capstan/kube'
import { nameFromTemplate } from './generated-name.ts'

export const machineNamingAdmission: readonly Admission[] = [
  admission<MachineSet>({ kind: MachineSet, validate: ({ spec }) => machineNamingErrors(spec.machineNaming?.template) }),
  admission<MachineDeployment>({
    kind: MachineDeployment,
    validate: ({ spec }) => machineNamingErrors(spec.machineNaming?.template),
  }),
]

/** What is wrong with `spec.machineNaming.template`. Pure: any cluster, any set and any chance will do. */
export function machineNamingErrors(template: string | undefined): FieldError[] {
  // That a template must have `.random` is a rule of the kind itself.
  if (template === undefined) return []
  const refused = (why: string) => [invalid('spec.machineNaming.template', template, `invalid template${why}`)]
  try {
    const name = nameFromTemplate(template, { cluster: { name: 'cluster' }, machineSet: { name: 'machineset' } }, seededRandom(1))
    const problems = subdomainProblems(name)
    if (problems.length === 0) return []
    return refused(`, generated names would not be valid Kubernetes object names: ${problems.join('; ')}`)
  } catch (err) {
    return refused(`: ${messageOf(err)}`)
  }
}
