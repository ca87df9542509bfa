/** Warns of handlers that will stop working. Asked for by the proposal of the Runtime SDK, never built upstream. */
import type { Catalog } from '@capstan/api'
import { ExtensionConfig, preflight, registeredHandlers, releasedCatalog } from '@capstan/api'
import { type Admission, admission } from '@capstan/kube'

/** A sentence for each handler that registered for a version which is deprecated. */
export const deprecatedHandlers = (config: ExtensionConfig, { hooks }: Catalog): string[] =>
  preflight(registeredHandlers(config), releasedCatalog('this release', '', hooks))
    .filter(({ kind }) => kind === 'deprecated')
    .map(({ handler, message }) => `${handler}: ${message}`)

/** Whoever changes an ExtensionConfig hears of what its server should not use any more. */
export const extensionConfigAdmission = (catalog: Catalog): Admission =>
  admission({
    kind: ExtensionConfig,
    operations: ['CREATE', 'UPDATE'],
    validate(config, request) {
      for (const text of deprecatedHandlers(config, catalog)) request.warn(text)
      return []
    },
  })
