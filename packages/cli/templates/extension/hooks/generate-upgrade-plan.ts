import { GenerateUpgradePlan } from '@capstan/api'
import { fail, on, proceedWith } from '@capstan/extension'

/**
 * Plans one step of the control plane for each minor version between the current and the requested version, such as `v1.35.0`, and a last
 * step to the requested version. The plan lists no steps of the workers, so core computes them. Core calls the hook again after each step
 * of the control plane.
 */
export const generateUpgradePlan = on(GenerateUpgradePlan, { name: 'generate-upgrade-plan' }, ({ request }) => {
  const minorOf = (version: string): number => Number(/^v1\.(\d+)\./.exec(version)?.[1])
  const { fromControlPlaneKubernetesVersion: from, toKubernetesVersion: to } = request
  const [first, last] = [minorOf(from), minorOf(to)]
  if (Number.isNaN(first) || Number.isNaN(last)) return fail(`no plan from ${from} to ${to}: expected versions such as v1.36.0`)
  const between = Array.from({ length: Math.max(0, last - first - 1) }, (_, index) => `v1.${first + 1 + index}.0`)
  const steps = from === to ? [] : [...between, to]
  return proceedWith({ controlPlaneUpgrades: steps.map((version) => ({ version })) })
})
