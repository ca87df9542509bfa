import { equal, type KubeObject } from '@capstan/kube'

type WithSpec = KubeObject & { spec?: unknown }

/**
 * Gives a draft the generation that the server will give it for what the pass changed in its spec. Status, which is written
 * right after, then holds for it, and need not be written once more when our own change comes back.
 */
export function anticipateGeneration(before: WithSpec, draft: WithSpec): void {
  const { generation } = before.metadata
  if (generation !== undefined && !equal(before.spec, draft.spec)) draft.metadata.generation = generation + 1
}
