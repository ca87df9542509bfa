import { type ProviderName, ProviderNames } from '@capstan/lab'
import { InvalidArgumentError } from 'commander'

/** Parses the value of `--providers`. A repeated name counts once. */
export function providerNames(text: string): ProviderName[] {
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.filter((name) => !(ProviderNames as readonly string[]).includes(name))
  if (unknown.length > 0)
    throw new InvalidArgumentError(`there is no provider ${unknown.join(', ')}: expected ${ProviderNames.join(', ')}.`)
  return [...new Set(names as ProviderName[])]
}
