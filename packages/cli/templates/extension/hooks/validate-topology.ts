import { ValidateTopology } from '@capstan/api'
import { fail, on, proceedNow } from '@capstan/extension'

/** Regions are `eu` or `us` and a number. What is wrong must be said the same way each time: users read it in a condition. */
export const validateTopology = on(ValidateTopology, { name: 'validate-topology' }, ({ request }) => {
  const region = request.variables?.find(({ name }) => name === 'region')?.value
  if (region === undefined || (typeof region === 'string' && /^(eu|us)\d+$/.test(region))) return proceedNow()
  return fail(`variable region is ${JSON.stringify(region)}: expected eu or us and a number`)
})
