/** Loads the hooks of other providers from modules, because commands otherwise know only the hooks of core. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createCatalog, type Hook, hookCatalog } from '@capstan/api'
import { appendAll, isRecord, messageOf } from '@capstan/kube'
import { type Command, Option } from 'commander'
import { UsageError } from './io.ts'

export interface ProviderHooksOptions {
  providerHooks?: readonly string[]
}

/** Adds the flag --provider-hooks to a command. */
export const withProviderHooks = (command: Command): Command =>
  command.addOption(
    new Option(
      '--provider-hooks <module>',
      'module that exports hooks of another provider, for extensions to handle; may be repeated',
    ).argParser((path, before: readonly string[] | undefined) => [...(before ?? []), path]),
  )

/**
 * Loads the hooks exported by the modules, in all versions.
 *
 * @throws UsageError naming a module that does not exist, exports no hook, or exports an invalid hook or a hook that is declared twice,
 *   for example by core and by the module; the error of a module that cannot be imported
 */
export async function loadProviderHooks({ providerHooks = [] }: ProviderHooksOptions): Promise<readonly Hook[]> {
  const loadedHooks: Hook[] = []
  for (const path of providerHooks) {
    if (!existsSync(path)) throw new UsageError(`--provider-hooks ${path}: there is no such file`)
    const exported = (await import(pathToFileURL(resolve(path)).href)) as { readonly [name: string]: unknown }
    // A module may export the same hook alone and in a list.
    const hooks = new Set(Object.values(exported).flat().filter(isHook))
    if (hooks.size === 0) throw new UsageError(`--provider-hooks ${path}: it exports no hook`, 'Hooks are made by defineHook.')
    appendAll(loadedHooks, hooks)
    try {
      createCatalog([...hookCatalog, ...loadedHooks])
    } catch (err) {
      throw new UsageError(`--provider-hooks ${path}: ${messageOf(err)}`)
    }
  }
  return loadedHooks
}

/** Returns core's hooks and the hooks of the modules. @throws the errors of `loadProviderHooks` */
export const allHooks = async (options: ProviderHooksOptions): Promise<readonly Hook[]> => [
  ...hookCatalog,
  ...(await loadProviderHooks(options)),
]

const isHook = (value: unknown): value is Hook =>
  isRecord(value) &&
  [value.group, value.version, value.name].every((part) => typeof part === 'string') &&
  isRecord(value.request) &&
  isRecord(value.response)
