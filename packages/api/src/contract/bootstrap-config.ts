/** Contract of the bootstrap data of a Machine. Upstream: internal/contract/bootstrap.go, v1.14. */
import { failureFields, templateFields } from './common.ts'
import { field } from './field.ts'

export const BootstrapConfigContract = {
  dataSecretCreated: field<boolean>(
    { v1beta1: 'status.ready', v1beta2: 'status.initialization.dataSecretCreated' },
    'True once the Secret with the bootstrap data is created.',
    { mandatory: true },
  ),
  dataSecretName: field<string>('status.dataSecretName', 'Name of the Secret with the bootstrap data, under the key `value`.', {
    mandatory: true,
  }),
  ...failureFields,
}

export const BootstrapConfigTemplateContract = templateFields
