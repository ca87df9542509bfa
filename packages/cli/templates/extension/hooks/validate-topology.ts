import { ValidateTopology } from '@capstan/api'
import { fail, on, proceedNow } from '@capstan/extension'

/**
 * Accepts a missing region, and regions such as `eu1` and `us2`. Core writes the message of a failure into a condition, so the message must
 * not change from call to call without a cause: each change is a write.
 */
export const validateTopology = on(ValidateTopology, { name: 'validate-topology' }, ({ request }) => {
  const region = request.variables?.find(({ name }) => name === 'region')?.value
  if (region === undefined || (typeof region === 'string' && /^(eu|us)\d+$/.test(region))) return proceedNow()
  return fail(`variable region is ${JSON.stringify(region)}: expected eu or us, followed by a number`)
})
