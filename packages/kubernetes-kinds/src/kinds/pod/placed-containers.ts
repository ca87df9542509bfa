import type { Container, PodSpec } from '../schemas/types.ts'
import { containersOf } from './defaults.ts'

/** Returns each container with its path below `field`: init containers, then containers, then ephemeral containers, as upstream. */
export function placedContainers(field: string, spec: PodSpec): [string, Container][] {
  const lists = ['initContainers', 'containers', 'ephemeralContainers'] as const
  const fields = lists.flatMap((list) => (spec[list] ?? []).map((_, index) => `${field}.${list}[${index}]`))
  return containersOf(spec).map((container, index) => [fields[index]!, container])
}
