/** A thread that parses one YAML text, posts the result, and ends. */
import { parentPort, workerData } from 'node:worker_threads'
import type { YAMLOutcome } from './read-yaml.ts'
import { readYAML } from './yaml.ts'

let outcome: YAMLOutcome
try {
  outcome = { document: readYAML(workerData as string) }
} catch (err) {
  outcome = { error: (err as Error).message }
}
parentPort?.postMessage(outcome)
