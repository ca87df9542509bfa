import { explained } from '../interop/core-twin/explained.ts'

/** Situations in which upstream's core writes without end, with the tests of Capstan's behaviour. */
const writesWithoutEnd = [
  'An extension responds to the same `GeneratePatches` request with other patches each time. Upstream replaces templates and Machines in each reconcile. Capstan does so five times in ten minutes; then `TopologyReconciled` reports the extension, and nothing changes until two responses in sequence are equal (`patch-responses.test.ts`, `failing-inputs.env.test.ts`).',
  'Naming templates of a class render the same name for two MachineDeployments or MachinePools of a topology. Upstream writes the object for each of them in turn. Capstan reports the name in `TopologyReconciled` (`failing-inputs.env.test.ts`).',
]

/** Generates docs/reference/differences.md: intended differences of Capstan's core from upstream's. */
export const differencesPage = (): string =>
  [
    '<!-- Made by npm run gen from interop/core-twin/explained.ts. -->',
    '# Differences from upstream',
    '',
    "`npm run interop -- core-twin` runs upstream's core manager (v1.14) and Capstan's on the same scripts and compares every object, Event",
    'and response. These differences are intended; any other difference is a bug.',
    '',
    '| difference | reason | what you see |',
    '| --- | --- | --- |',
    ...explained.map(({ what, reason, effect }) => `| ${what} | ${reason} | ${effect} |`),
    '',
    "In two situations upstream's core writes without end, so that no script can compare the results:",
    '',
    ...writesWithoutEnd.map((text) => `- ${text}`),
    '',
  ].join('\n')
