import { checkout } from './scaffold/origin.ts'

/** Name of this package on npm. `npx capstan` would run an unrelated package. */
const ownPackage = '@capstan/cli'

/**
 * Returns the command with which the user starts this program, for printed commands: `capstan`, which is on the path after a global
 * installation, unless the program runs from a checkout, or npm or npx started it. npm and npx set `npm_command` for the programs and
 * scripts that they start.
 */
export function commandName(env: { readonly [name: string]: string | undefined }, isCheckout = checkout() !== undefined): string {
  return env.npm_command !== undefined || isCheckout ? `npx ${ownPackage}` : 'capstan'
}
