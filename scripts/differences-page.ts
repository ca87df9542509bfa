import { explained } from '../interop/core-twin/explained.ts'

/** docs/reference/differences.md: where Capstan's core differs from upstream's on purpose. */
export const differencesPage = (): string =>
  [
    '<!-- Made by npm run gen from interop/core-twin/explained.ts. -->',
    '# Differences from upstream',
    '',
    "`npm run interop -- core-twin` runs upstream's core manager (v1.14) and Capstan's on the same scripts and compares every object, Event",
    'and answer. These differences are intended; every other one is a bug.',
    '',
    '| difference | reason | what you see |',
    '| --- | --- | --- |',
    ...explained.map(({ what, reason, seen }) => `| ${what} | ${reason} | ${seen} |`),
    '',
  ].join('\n')
