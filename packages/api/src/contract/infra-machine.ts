/** Contract of the infrastructure of a Machine. Upstream: internal/contract/infrastructure_machine.go, v1.14. */
import type { MachineAddress } from '../core/v1beta2/machine.ts'
import { failureFields, templateFields } from './common.ts'
import { field } from './field.ts'

export const InfraMachineContract = {
  provisioned: field<boolean>(
    { v1beta1: 'status.ready', v1beta2: 'status.initialization.provisioned' },
    'True once the host is provisioned. Until then core copies no other field.',
    { mandatory: true },
  ),
  providerID: field<string>('spec.providerID', 'Identifies the host at its provider; equals the spec.providerID of its Node.', {
    mandatory: true,
  }),
  specFailureDomain: field<string>(
    'spec.failureDomain',
    'Deprecated: failure domain of the host. Core writes it into the Machine spec.',
  ),
  failureDomain: field<string>('status.failureDomain', 'Failure domain of the host.'),
  addresses: field<MachineAddress[]>('status.addresses', 'Addresses of the host.'),
  interruptible: field<boolean>(
    'status.interruptible',
    'True when the infrastructure may remove the host at any time, as spot instances are.',
  ),
  ...failureFields,
}

export const InfraMachineTemplateContract = {
  ...templateFields,
  capacity: field<{ [resource: string]: string }>(
    'status.capacity',
    'Capacity of the hosts of the template, for the cluster autoscaler.',
  ),
}
