import { checkout } from './scaffold/origin.ts'

/** Name of this package on npm. `npx capstan` would run an unrelated package. */
const ownPackage = '@capstan/cli'

/**
 * Returns the command with which the user starts this program, for printed commands. `capstan` is on the path only after a global
 * installation; npm, npx and scripts of a project set `npm_command` for the programs that they start.
 */
export function commandName(env: { readonly [name: string]: string | undefined }, isCheckout = checkout() !== undefined): string {
  return env.npm_command !== undefined || isCheckout ? `npx ${ownPackage}` : 'capstan'
}
