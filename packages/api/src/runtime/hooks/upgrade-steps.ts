import { s } from '@capstan/kube'

const steps = () => s.list(s.object({ version: s.string().doc('Kubernetes version of the step.') }))

/** Which versions an upgrade has yet to pass, next step first; absent when none is left. */
export const upgradeSteps = {
  controlPlaneUpgrades: steps().optional().doc('Versions that the control plane has yet to pass, next step first.'),
  workersUpgrades: steps().optional().doc('Versions that the workers have yet to pass, next step first.'),
}
