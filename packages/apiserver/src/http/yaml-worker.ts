/** A thread that reads one YAML text: it says what came of it, and ends. It loads nothing that it can do without. */
import { parentPort, workerData } from 'node:worker_threads'
import type { YAMLOutcome, YAMLTask } from './read-yaml.ts'
import { parseYAML } from './yaml.ts'

const { text, strict } = workerData as YAMLTask
let outcome: YAMLOutcome
try {
  outcome = { value: parseYAML(text, { strict }) }
} catch (err) {
  outcome = { error: (err as Error).message }
}
parentPort?.postMessage(outcome)
