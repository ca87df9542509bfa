import { explained } from '../interop/core-twin/explained.ts'

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
    ...explained.map(({ what, reason, seen }) => `| ${what} | ${reason} | ${seen} |`),
    '',
  ].join('\n')
