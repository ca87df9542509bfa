import { readFileSync } from 'node:fs'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { metricsPage } from './metrics-page.ts'

/** A metric that an expression of an alert or of a dashboard panel reads. */
interface Read {
  /** Name of the metric, without the suffix `_bucket` of histograms. */
  readonly metric: string
  /** Labels that the expression selects or groups by, without `le` of a metric that ends in `_bucket`. */
  readonly labels: readonly string[]
}

/** Returns the metrics that an expression reads. The labels of a `by (…)` count for every metric of the expression. */
function readsOf(expression: string): Read[] {
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) => names!.split(/,\s*/))
  const metrics =
    /\b((?:capstan|capi|controller_runtime|leader_election|nodejs|process|rest_client|workqueue)_\w+)(?:\{([^}]*)\})?/g
  return [...expression.matchAll(metrics)].map(([, name, selectors = '']) => {
    const selected = [...selectors.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!)
    const isBucket = name!.endsWith('_bucket')
    const labels = [...grouped, ...selected].filter((label) => !(isBucket && label === 'le'))
    return { metric: name!.replace(/_bucket$/, ''), labels: [...new Set(labels)] }
  })
}

/**
 * Returns the labels of a manager's metrics, by name of the metric: the metrics of the generated page, and the default metrics of prom-client,
 * which count as metrics without labels.
 */
async function labelsOfMetrics(): Promise<Map<string, readonly string[]>> {
  const [manager = ''] = (await metricsPage()).split('\n## Extension server')
  const rows = [...manager.matchAll(/^\| `(\w+)` \| \w+ \| ([^|]*) \|/gm)]
  const known = new Map(rows.map(([, name, labels]) => [name!, [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!)]))
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const { name } of registry.getMetricsAsArray()) known.set(name, [])
  return known
}

const text = (path: string) => readFileSync(new URL(`../config/monitoring/${path}`, import.meta.url), 'utf8')
const rules = (
  parse(text('alerts.yaml')) as { groups: { rules: { alert: string; expr: string; annotations: object }[] }[] }
).groups.flatMap((group) => group.rules)
const { panels } = JSON.parse(text('dashboard.json')) as { panels: { title: string; targets: { expr: string }[] }[] }

test.each([
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
])('%s reads metrics and labels that a manager has', async (_, expression) => {
  const known = await labelsOfMetrics()
  const reads = readsOf(expression)
  expect(reads).not.toEqual([])
  for (const { metric, labels } of reads) {
    expect([...known.keys()]).toContain(metric)
    expect(labels.filter((label) => !known.get(metric)!.includes(label))).toEqual([])
  }
})

test('if the expression of an alert groups by labels, the text of the alert names only these labels', () => {
  const groupedLabels = ({ expr }: (typeof rules)[number]) => {
    const [, names] = /\bby \(([^)]*)\)/.exec(expr) ?? []
    return names?.split(/,\s*/)
  }
  for (const rule of rules)
    for (const [, label] of JSON.stringify(rule.annotations).matchAll(/\$labels\.(\w+)/g))
      expect(groupedLabels(rule) ?? [label], rule.alert).toContain(label)
})

test('the guide for operators has a row for each alert', () => {
  const guide = readFileSync(new URL('../docs/guides/operate.md', import.meta.url), 'utf8')
  for (const { alert } of rules) expect(guide).toContain(`| \`${alert}\` |`)
})
