/** Fields common to provider resources of all contracts. */
import { field } from './field.ts'

/** Metadata that a template gives to what is made from it. */
export interface ContractMetadata {
  labels?: { [key: string]: string }
  annotations?: { [key: string]: string }
}

/** Where an API server is reached, as providers report it. It counts only when both are there and not empty. */
export interface ContractEndpoint {
  host?: string
  port?: number
}

/** The end of the road, in words: deprecated, and not to be set by providers of contract v1beta2. */
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
