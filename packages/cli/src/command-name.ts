import { checkout } from './scaffold/origin.ts'

/** The package on npm: `npx capstan` would run whatever package has that name there. */
const ownPackage = '@capstan/cli'

/**
 * How the user starts this command, for commands that are printed to be pasted. `capstan` is on the path only after a global
 * installation; npm, and so npx and every script of a project, sets `npm_command` for what it starts.
 */
export function commandName(env: { readonly [name: string]: string | undefined }, isCheckout = checkout() !== undefined): string {
  return env.npm_command !== undefined || isCheckout ? `npx ${ownPackage}` : 'capstan'
}
