import { legacyFalse, legacyTrue, type NewCondition, type NewLegacyCondition } from '@capstan/kube'

/** The Discovered condition in the form of v1beta1. Pure. */
export const legacyDiscovered = ({ type, status, message }: NewCondition): NewLegacyCondition =>
  status === 'True' ? legacyTrue(type) : legacyFalse(type, 'DiscoveryFailed', 'Error', message)
