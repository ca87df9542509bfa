/** Contract of the bootstrap data of a Machine. Upstream: internal/contract/bootstrap.go, v1.14. */
import { failureFields, templateFields } from './common.ts'
import { type ContractVersion, field, readText } from './field.ts'

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

/** Maximum length of `Machine.spec.bootstrap.dataSecretName`, in characters. */
const maxSecretNameLength = 253

/**
 * Returns the name of the Secret with the bootstrap data; `undefined` or empty until the provider reports it.
 *
 * @throws TypeError when `status` is not an object, or the name is not a string or is too long for a Machine
 */
export const dataSecretNameOf = (config: object, contract: ContractVersion): string | undefined =>
  readText(config, BootstrapConfigContract.dataSecretName, contract, maxSecretNameLength)

export const BootstrapConfigTemplateContract = templateFields
