/** Contract of the infrastructure of a Machine. Upstream: internal/contract/infrastructure_machine.go, v1.14. */
import type { MachineAddress } from '../core/v1beta2/machine.ts'
import { failureFields, templateFields } from './common.ts'
import { field } from './field.ts'

export const InfraMachineContract = {
  provisioned: field<boolean>(
    { v1beta1: 'status.ready', v1beta2: 'status.initialization.provisioned' },
    'True once the host is there. Until then core copies nothing else.',
    { mandatory: true },
  ),
  providerID: field<string>(
    'spec.providerID',
    'Names the host among all of its provider; equals the spec.providerID of its Node.',
    {
      mandatory: true,
    },
  ),
  specFailureDomain: field<string>(
    'spec.failureDomain',
    'Deprecated: where the host was placed. Core writes it into the Machine spec.',
  ),
  failureDomain: field<string>('status.failureDomain', 'Where the host was placed.'),
  addresses: field<MachineAddress[]>('status.addresses', 'Addresses of the host.'),
  interruptible: field<boolean>('status.interruptible', 'True when the infrastructure may take the host away at any time.'),
  ...failureFields,
}

export const InfraMachineTemplateContract = {
  ...templateFields,
  capacity: field<{ [resource: string]: string }>(
    'status.capacity',
    'What hosts of the template offer, for the cluster autoscaler.',
  ),
}
