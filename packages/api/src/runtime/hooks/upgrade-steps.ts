import { s } from '@capstan/kube'

const steps = () => s.list(s.object({ version: s.string().doc('Kubernetes version of the step.') }))

/** Fields that contain the remaining versions of an upgrade, next step first. In a request, core omits a list when no version remains. */
export const upgradeSteps = {
  controlPlaneUpgrades: steps().optional().doc('Remaining versions of the control plane in the upgrade plan, next step first.'),
  workersUpgrades: steps().optional().doc('Remaining versions of the workers in the upgrade plan, next step first.'),
}
