import type { Bench } from '../bench.ts'
import { addresses } from './addresses.ts'
import { deletion } from './deletion.ts'
import { externallyManaged } from './externally-managed.ts'
import { life } from './life.ts'
import { paused } from './paused.ts'
import { restarted } from './restarted.ts'
import { templates } from './templates.ts'
import { late, orphans } from './waiting.ts'

/** Scenarios of the live conformance checks, by name. Each runs in its own namespace; the checks evaluate its record. */
export const scenarios = {
  life,
  orphans,
  late,
  paused,
  deletion,
  templates,
  'externally-managed': externallyManaged,
  /** Runs only when a kind of address pools is under test. */
  addresses,
  /** Runs without other scenarios, because it stops the provider. */
  restarted,
} satisfies Readonly<Record<string, (bench: Bench) => Promise<void>>>

export type ScenarioName = keyof typeof scenarios

export const scenarioNames = Object.keys(scenarios) as ScenarioName[]
