import type { Bench } from '../bench.ts'
import { deletion } from './deletion.ts'
import { externallyManaged } from './externally-managed.ts'
import { life } from './life.ts'
import { paused } from './paused.ts'
import { restarted } from './restarted.ts'
import { templates } from './templates.ts'
import { late, orphans } from './waiting.ts'

/** What the driver does with a provider. Each has a namespace of its own, and its record is what live checks look at. */
export const scenarios = {
  life,
  orphans,
  late,
  paused,
  deletion,
  templates,
  'externally-managed': externallyManaged,
  /** Runs alone: it stops the provider. */
  restarted,
} satisfies Readonly<Record<string, (bench: Bench) => Promise<void>>>

export type ScenarioName = keyof typeof scenarios

export const scenarioNames = Object.keys(scenarios) as ScenarioName[]
