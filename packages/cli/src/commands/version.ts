import { Command, Option } from 'commander'
import type { Io } from '../io.ts'
import { versions } from '../versions.ts'

/** `capstan version`: prints all `versions` as text or JSON. */
export const versionCommand = (io: Io): Command =>
  new Command('version')
    .description(
      'Print the versions of Capstan and Node, and the versions of Kubernetes, Cluster API and its contract that Capstan implements',
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(({ output }: { output: 'text' | 'json' }) => {
      if (output === 'json') io.out(JSON.stringify(versions))
      else for (const [name, version] of Object.entries(versions)) io.out(`${name}: ${version}`)
    })
