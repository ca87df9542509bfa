import type { ContractField } from '@capstan/api'
import { shortened } from '@capstan/kube'
import type { External } from './get.ts'
import { readTyped } from './observed.ts'

/** A terminal failure, in the deprecated fields of a status. */
export interface TerminalFailure {
  failureReason?: string
  failureMessage?: string
}

/**
 * Returns the terminal failure that a provider's object reports, for the status of the object that references it; `undefined` when there is
 * none.
 *
 * @throws TypeError when a field is not a string
 */
export function failureOf(
  external: External,
  fields: { readonly failureReason: ContractField<string>; readonly failureMessage: ContractField<string> },
): TerminalFailure | undefined {
  const failureReason = readTyped(external, fields.failureReason, 'string')
  const message = readTyped(external, fields.failureMessage, 'string')
  if (!failureReason && !message) return undefined
  const { apiVersion, kind, metadata } = external.object
  return {
    ...(failureReason ? { failureReason } : {}),
    ...(message
      ? {
          failureMessage: `Failure detected from referenced resource ${apiVersion}, Kind=${kind} with name "${metadata.name}": ${message}`,
        }
      : {}),
  }
}

/** Maximum number of characters of a failure message: a longer message would make the API server reject the whole status. */
const LongestMessage = 10_240

/** Writes a failure into the draft of an object, and truncates a message that is too long. Without a failure, the existing value stays. */
export function setFailure(
  object: { status?: { deprecated?: { v1beta1?: TerminalFailure } } },
  failure: TerminalFailure | undefined,
): void {
  if (!failure) return
  const { failureMessage } = failure
  const texts = { ...failure, ...(failureMessage ? { failureMessage: shortened(failureMessage, LongestMessage) } : {}) }
  const status = (object.status ??= {})
  status.deprecated = { ...status.deprecated, v1beta1: { ...status.deprecated?.v1beta1, ...texts } }
}
