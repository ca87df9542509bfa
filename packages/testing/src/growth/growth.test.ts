/**
 * Tests that the work of the API server grows linearly with its input, or little faster (`MaxPerDoubling`). Work is counted in steps:
 * executed blocks of code, and elements that built-in functions visit. In each case of `cases.ts`, one list, map or string of an object
 * grows. `npm test` measures the request `create` with a sample of the cases; `npm run interop -- growth` measures all requests of
 * `verbs.ts` with all cases.
 */
import { providerKinds } from '@capstan/lab'
import { customResourceDefinition } from '@capstan/kube'
import { type ApiServer } from '@capstan/kubernetes-kinds'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'
import { type GrowthCase, growthCases } from './cases.ts'
import { measureGrowth, growthProblems } from './growth.ts'
import { measureVerbs } from './verbs.ts'
import { workOutsideRequests } from './work.ts'

const measuresAllCases = process.env.CAPSTAN_GROWTH === 'all'
/** The sample contains every 450th case. */
const SampleInterval = 450

test.each(workOutsideRequests)('work grows linearly: %s', async (name, work) => {
  expect(growthProblems([await measureGrowth(name, work)])).toEqual([])
})

test('growthProblems reports quadratic work', async () => {
  const work = (size: number) => {
    const list = Array.from({ length: size }, (_, index) => ({ name: `n${index}` }))
    return list.map(({ name }) => list.find((item) => item.name === name))
  }
  expect(growthProblems([await measureGrowth('a scan for each item', work)])).toHaveLength(1)
})

const { server } = await testServer({
  customResources: [...providerKinds.core, ...providerKinds.local].map((kind) => customResourceDefinition(kind)),
})
const cases = server.engine.resources.list().flatMap(growthCases)

if (measuresAllCases) {
  for (const [kind, casesOfKind] of Map.groupBy(
    cases,
    ({ resource }) => `${resource.kind} ${resource.group} ${resource.version}`,
  ))
    test(`work grows linearly with every list, map and string of ${kind}`, { timeout: 1_200_000 }, () =>
      check(server, casesOfKind, 'all'),
    )
} else {
  test('work grows linearly with a sample of the lists, maps and strings of all kinds', { timeout: 60_000 }, () =>
    check(
      server,
      cases.filter((_, index) => index % SampleInterval === 0),
      'create',
    ),
  )
}

async function check(server: ApiServer, checkedCases: readonly GrowthCase[], verbs: 'create' | 'all'): Promise<void> {
  const problems: string[] = []
  for (const growthCase of checkedCases) problems.push(...growthProblems(await measureVerbs(server, growthCase, verbs)))
  expect(problems).toEqual([])
}
