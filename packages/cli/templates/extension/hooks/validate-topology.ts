import { ValidateTopology } from '@capstan/api'
import { fail, on, proceedNow } from '@capstan/extension'

/** Accepts regions such as `eu1` and `us2`. Users read the message in a condition, so it must not change from call to call. */
export const validateTopology = on(ValidateTopology, { name: 'validate-topology' }, ({ request }) => {
  const region = request.variables?.find(({ name }) => name === 'region')?.value
  if (region === undefined || (typeof region === 'string' && /^(eu|us)\d+$/.test(region))) return proceedNow()
  return fail(`variable region is ${JSON.stringify(region)}: expected eu or us and a number`)
})
