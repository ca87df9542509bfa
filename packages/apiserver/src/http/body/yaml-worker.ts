/** A thread that reads one YAML text: it says what came of it, and ends. It loads nothing that it can do without. */
import { parentPort, workerData } from 'node:worker_threads'
import type { YAMLOutcome } from './read-yaml.ts'
import { readYAML, type YAMLTask } from './yaml.ts'

let outcome: YAMLOutcome
try {
  outcome = { value: readYAML(workerData as YAMLTask) }
} catch (err) {
  outcome = { error: (err as Error).message }
}
parentPort?.postMessage(outcome)
