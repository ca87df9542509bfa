/** Records which reasons of conditions the cases of a run reach, and lists the declared reasons that no case has reached. */
import * as api from '@capstan/api'
import type { Condition, ConditionType, Kind, KubeObject } from '@capstan/kube'

/** Kinds, condition types, statuses and reasons that one side (upstream's core or Capstan's) has reported. */
export class ReachedReasons {
  readonly #texts = new Set<string>()

  record({ kind }: Kind, object: KubeObject): void {
    const { conditions = [] } = (object as { status?: { conditions?: readonly Condition[] } }).status ?? {}
    for (const { type, status, reason } of conditions) this.#texts.add(textOf(kind, type, status, reason))
  }

  has(kind: string, type: string, status: string, reason: string): boolean {
    return this.#texts.has(textOf(kind, type, status, reason))
  }
}

const textOf = (...parts: readonly string[]): string => parts.join(' ')

/**
 * Returns a line for each kind that has declared reasons that were not reached. A reason is reached when all sides have reported it with
 * the same status.
 */
export function unreachedReasons(sides: readonly ReachedReasons[], declared = declaredConditions()): string[] {
  const isReached = (kind: string, type: string, reason: string) =>
    ['True', 'False', 'Unknown'].some((status) => sides.every((side) => side.has(kind, type, status, reason)))
  return declared.flatMap(([kind, types]) => {
    const unreached = types.flatMap(({ type, reasons }) => {
      const missing = reasons.filter((reason) => !isReached(kind, type, reason))
      return missing.length > 0 ? `${type} ${missing.join(', ')}` : []
    })
    return unreached.length > 0 ? `${kind}: ${unreached.join('; ')}` : []
  })
}

type DeclaredConditions = readonly (readonly [kind: string, types: readonly Pick<ConditionType, 'type' | 'reasons'>[]])[]

const suffix = 'Conditions'

/** Returns the conditions of each kind, from which `docs/reference/conditions.md` is generated too. */
function declaredConditions(): DeclaredConditions {
  return (Object.entries(api) as [string, Record<string, ConditionType>][])
    .filter(([name]) => name.endsWith(suffix))
    .map(([name, types]) => [name.slice(0, -suffix.length), Object.values(types)] as const)
}
