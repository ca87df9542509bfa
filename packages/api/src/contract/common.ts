/** Fields common to provider resources of all contracts. */
import { field } from './field.ts'

/** Metadata that a template gives to objects created from it. */
export interface ContractMetadata {
  labels?: { [key: string]: string }
  annotations?: { [key: string]: string }
}

/** Address of an API server, as providers report it. Ignored unless host and port are both set. */
export interface ContractEndpoint {
  host?: string
  port?: number
}

/** Reason and message of a terminal failure. Deprecated; providers of contract v1beta2 must not set them. */
export const failureFields = {
  failureReason: field<string>('status.failureReason', 'Deprecated: why it failed for good, in one word for programs.'),
  failureMessage: field<string>('status.failureMessage', 'Deprecated: why it failed for good, in words for people.'),
}

export const templateFields = {
  metadata: field<ContractMetadata>('spec.template.metadata', 'Labels and annotations for what is made from the template.', {
    mandatory: true,
  }),
  spec: field<{ [name: string]: unknown }>('spec.template.spec', 'Spec of what is made from the template.', { mandatory: true }),
}
