import { hookCatalog, hooksOpenApi } from '@capstan/api'
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import type { Io } from '../../io.ts'
import { versions } from '../../versions.ts'

/** `capstan hooks openapi`: the OpenAPI document of all hooks, the same byte for byte each time. */
export const openapiCommand = (io: Io): Command =>
  new Command('openapi')
    .description('Print the OpenAPI document of all hooks')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .action(({ output }: { output: 'yaml' | 'json' }) => {
      const document = hooksOpenApi(hookCatalog, versions.clusterAPI)
      io.out(
        output === 'json'
          ? JSON.stringify(document, undefined, 2)
          : stringify(document, { aliasDuplicateObjects: false }).trimEnd(),
      )
    })
