import { forbidden, type Plugin } from '@capstan/apiserver/kinds'

const deny: NonNullable<Plugin['mutate']> = (write) => {
  throw forbidden(write, 'admission control is denying all modifications')
}

/** Denies every create, update and deletion. Upstream: plugin/pkg/admission/deny. */
export const alwaysDeny: Plugin = { name: 'AlwaysDeny', appliesTo: () => true, mutate: deny, validate: deny }
