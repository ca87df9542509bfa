/** Fields that provider objects of several contracts have in common. */
import { field } from './field.ts'

/** Metadata that a template gives to objects created from it. */
export interface ContractMetadata {
  labels?: { [key: string]: string }
  annotations?: { [key: string]: string }
}

/** Address of an API server, as providers report it. Complete when host and port are both set. */
export interface ContractEndpoint {
  host?: string
  port?: number
}

/** Reason and message of a terminal failure. Deprecated in contract v1beta2, in which conditions report failures. */
export const failureFields = {
  failureReason: field<string>('status.failureReason', 'Deprecated: reason of a terminal failure, one word for programs.'),
  failureMessage: field<string>('status.failureMessage', 'Deprecated: message of a terminal failure, for people.'),
}

export const templateFields = {
  metadata: field<ContractMetadata>(
    'spec.template.metadata',
    'Labels and annotations of the objects created from the template.',
    {
      mandatory: true,
    },
  ),
  spec: field<{ [name: string]: unknown }>('spec.template.spec', 'Spec of the objects created from the template.', {
    mandatory: true,
  }),
}
