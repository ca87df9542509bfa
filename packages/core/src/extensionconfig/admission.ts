/**
 * Warns about handlers of deprecated hook versions: the Runtime SDK proposal describes such warnings, and upstream has not implemented them.
 * Once `status.handlers` is set, also warns if the annotation `runtime.capstan.dev/handler-overrides`, which overrides timeouts and failure
 * policies, names a handler that is not in this list.
 */
import type { Catalog } from '@capstan/api'
import { ExtensionConfig, preflight, registeredHandlers, releasedCatalog } from '@capstan/api'
import { type Admission, admission } from '@capstan/kube'
import { unknownOverrides } from './overrides.ts'

/** Returns a warning for each handler that is registered for a deprecated hook version. */
export const deprecationWarnings = (config: ExtensionConfig, { hooks }: Catalog): string[] =>
  preflight(registeredHandlers(config), releasedCatalog('this release', '', hooks))
    .filter(({ kind }) => kind === 'deprecated')
    .map(({ handler, message }) => `${handler}: ${message}`)

/** Warns on create and update of an ExtensionConfig. */
export const extensionConfigAdmission = (catalog: Catalog): Admission =>
  admission({
    kind: ExtensionConfig,
    operations: ['CREATE', 'UPDATE'],
    validate(config, request) {
      for (const text of deprecationWarnings(config, catalog)) request.warn(text)
      const { handlers } = config.status ?? {}
      const unknown = handlers && unknownOverrides(config, handlers)
      if (unknown !== undefined) request.warn(unknown)
      return []
    },
  })
