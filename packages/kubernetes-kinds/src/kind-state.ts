import type { WriteServices } from '@capstan/apiserver/kinds'
import type { ServiceAccountTokens } from './auth/service-account-tokens.ts'
import type { ServiceAddresses } from './kinds/service/addresses.ts'

/** State of one server, besides its store, that strategies and subresources of built-in kinds use. */
export interface KindState {
  readonly serviceAddresses: ServiceAddresses
  readonly tokens: ServiceAccountTokens
}

/** Returns the state that `createApiServer` passed to the server. */
export const kindState = ({ kindState: state }: Pick<WriteServices, 'kindState'>): KindState => state as KindState
