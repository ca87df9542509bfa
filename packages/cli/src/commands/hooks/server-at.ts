/** An extension server as flags name it. */
import { readFileSync } from 'node:fs'
import type { ClientConfig } from '@capstan/api'

export const serverAt = (url: string, caFile: string | undefined): ClientConfig => ({
  url,
  ...(caFile === undefined ? {} : { caBundle: readFileSync(caFile).toString('base64') }),
})
