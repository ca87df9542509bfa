import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { metricsPage } from './metrics-page.ts'

/** Names of metrics in an expression, without the suffixes of histograms. */
const namesIn = (expression: string): string[] =>
  [...expression.matchAll(/\b(?:capstan|capi|controller_runtime|leader_election|process|rest_client|workqueue)_\w+/g)].map(
    ([name]) => name.replace(/_bucket$/, ''),
  )

const text = (path: string) => readFileSync(new URL(`../config/monitoring/${path}`, import.meta.url), 'utf8')
const rules = (parse(text('alerts.yaml')) as { groups: { rules: { alert: string; expr: string }[] }[] }).groups.flatMap(
  (group) => group.rules,
)
const { panels } = JSON.parse(text('dashboard.json')) as { panels: { title: string; targets: { expr: string }[] }[] }

test.each([
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
])('%s reads metrics that a manager has', async (_, expression) => {
  const page = await metricsPage()
  const names = namesIn(expression)
  expect(names).not.toEqual([])
  // Metrics of the process come from prom-client and are not in the page.
  for (const name of names.filter((one) => !one.startsWith('process_'))) expect(page).toContain(`| \`${name}\` |`)
})

test('the guide for operators has the remedy for each alert', () => {
  const guide = readFileSync(new URL('../docs/guides/operate.md', import.meta.url), 'utf8')
  for (const { alert } of rules) expect(guide).toContain(`| \`${alert}\` |`)
})
