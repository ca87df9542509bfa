/**
 * The hooks of this provider in release v0.3.0, declared as `@capstan/api` declares those of Cluster API. Types, validation, OpenAPI and
 * conversion are derived from these declarations.
 */
import { commonResponse, defineHook, type Hook, newerVersion, retryResponse } from '@capstan/api'
import { s } from '@capstan/kube'

const declare = {
  group: 'hooks.provider.example.com',
  name: 'BeforeHostProvision',
  tag: 'Hosts',
  blocking: true,
  doc: 'Called before a Host is provisioned, again and again until no handler blocks it.',
}

/** The newest version, which the controller calls. */
export const BeforeHostProvision = defineHook({
  ...declare,
  version: 'v1',
  request: {
    host: s.object({ namespace: s.string(), name: s.string() }).doc('The Host that is about to be provisioned.'),
    cores: s.int32().doc('Number of its cores.'),
  },
  response: retryResponse,
})

/**
 * The first version: the Host is one string, and the time to wait is in whole minutes. Handlers that registered for it keep working,
 * because requests and responses are converted. Deprecated since release v0.2.0, which added v1. A deprecated beta version must be served
 * for six months and two releases, so v0.4.0 of 2026-11-21 may remove it.
 */
export const BeforeHostProvisionV1beta1 = defineHook({
  ...declare,
  version: 'v1beta1',
  deprecated: { release: 'v0.2.0', date: '2026-05-01' },
  request: { hostname: s.string().doc('`<namespace>/<name>`.') },
  response: { ...commonResponse, waitMinutes: s.int32().default(0).doc('When to call again; 0 allows the provisioning.') },
  newer: newerVersion(BeforeHostProvision, {
    requestDown: ({ host }) => ({ hostname: `${host.namespace}/${host.name}` }),
    responseUp: ({ waitMinutes, ...rest }: { status: 'Success' | 'Failure'; message?: string; waitMinutes: number }) => ({
      ...rest,
      retryAfterSeconds: waitMinutes * 60,
    }),
  }),
})

/**
 * All hooks of the provider in all versions, for its own manager (`createCatalog([...hookCatalog, ...hostHooks])`) and for core's manager,
 * which discovers extensions (`createProviders({ …, providerHooks: hostHooks })` of `@capstan/lab`).
 */
export const hostHooks: readonly Hook[] = [BeforeHostProvisionV1beta1, BeforeHostProvision]
