/** Applies the overrides of handlers in an annotation of an ExtensionConfig, and finds overrides for unknown handlers. Pure. */
import { type ExtensionConfig, type ExtensionHandler, extensionOptions, HandlerOverridesAnnotation } from '@capstan/api'

const shortName = (handler: string, configName: string): string =>
  handler.endsWith(`.${configName}`) ? handler.slice(0, -configName.length - 1) : handler

/**
 * Returns the handlers with the timeouts and failure policies that apply. The names of `handlers` may end with the name of the
 * ExtensionConfig: `gate.sample` or `gate`. The overrides have names without it.
 */
export function effectiveHandlers<T extends { readonly name: string }>(config: ExtensionConfig, handlers: readonly T[]): T[] {
  const { overrides } = extensionOptions(config)
  return handlers.map((handler) => ({ ...handler, ...overrides[shortName(handler.name, config.metadata.name)] }))
}

/** Describes overrides for handlers that the extension does not have; `undefined` when there are none. */
export function unknownOverrides(config: ExtensionConfig, handlers: readonly ExtensionHandler[]): string | undefined {
  const names = handlers.map(({ name }) => shortName(name, config.metadata.name))
  const unknown = Object.keys(extensionOptions(config).overrides).filter((name) => !names.includes(name))
  if (unknown.length === 0) return undefined
  const existingText = names.length === 0 ? 'it has no handlers' : `its handlers are ${names.join(', ')}`
  return `metadata.annotations[${HandlerOverridesAnnotation}]: the extension has no handler ${unknown.join(', ')}: ${existingText}`
}
