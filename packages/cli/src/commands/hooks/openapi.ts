import { hooksOpenApi } from '@capstan/api'
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import type { Io } from '../../io.ts'
import { allHooks, type ProviderHooksOptions, withProviderHooks } from '../../provider-hooks.ts'
import { versions } from '../../versions.ts'

interface Options extends ProviderHooksOptions {
  output: 'yaml' | 'json'
}

/** `capstan hooks openapi`: prints the OpenAPI document of all hooks. The output is deterministic. */
export const openapiCommand = (io: Io): Command =>
  withProviderHooks(new Command('openapi'))
    .description('Print the OpenAPI document of all hooks')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .action(async ({ output, ...options }: Options) => {
      const document = hooksOpenApi(await allHooks(options), versions.clusterAPI)
      io.out(
        output === 'json'
          ? JSON.stringify(document, undefined, 2)
          : stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }).trimEnd(),
      )
    })
