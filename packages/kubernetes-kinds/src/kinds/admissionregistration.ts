/** The kinds of `admissionregistration.k8s.io/v1`, except MutatingAdmissionPolicy and its binding, which are not implemented. */
import { MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from '@capstan/kube'
import { validatingadmissionpolicies, validatingadmissionpolicybindings } from './admission-policies.ts'
import { declaredIn, type KindTable } from './builtin-kind.ts'
import { ageColumn, column, list, nameColumn } from './columns.ts'

const columns = [nameColumn, column('Webhooks', (o) => list(o, 'webhooks').length), ageColumn]

export const admissionregistration: KindTable = {
  validatingadmissionpolicies,
  validatingadmissionpolicybindings,
  mutatingwebhookconfigurations: {
    ...declaredIn(MutatingWebhookConfiguration),
    schema: MutatingWebhookConfiguration.schema,
    generation: true,
    columns,
  },
  validatingwebhookconfigurations: {
    ...declaredIn(ValidatingWebhookConfiguration),
    schema: ValidatingWebhookConfiguration.schema,
    generation: true,
    columns,
  },
}
