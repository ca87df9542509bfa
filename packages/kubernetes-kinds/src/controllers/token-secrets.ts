/**
 * Writes a token into Secrets of type `kubernetes.io/service-account-token`, for the service account that they name. The token is valid as
 * long as the Secret contains it and the account exists. A Secret whose account does not exist, or was created again, is deleted. Upstream:
 * pkg/controller/serviceaccount/tokens_controller.go, v1.36.
 */
import { isReason, Secret, type ServiceAccount } from '@capstan/kube'
import type { ServiceAccountTokens } from '../auth/service-account-tokens.ts'
import { type ControllerOptions, WorkQueue } from '@capstan/apiserver/kinds'

const TokenSecretType = 'kubernetes.io/service-account-token'
const accountName = 'kubernetes.io/service-account.name'
const accountUid = 'kubernetes.io/service-account.uid'

interface Options extends Omit<ControllerOptions, 'registry'> {
  readonly tokens: ServiceAccountTokens
  /** CA certificate, PEM, for `ca.crt` of the Secrets; `undefined`: the controller does not set `ca.crt`. */
  readonly rootCA: string | undefined
}

export function runTokenSecrets({ store, clock, log, client, tokens, rootCA }: Options): () => void {
  const queue = new WorkQueue({ name: 'token-secrets', clock, log, run })
  const trackSecret = (secret: Secret) => {
    if (secret.type === TokenSecretType) queue.add(`${secret.metadata.namespace}/${secret.metadata.name}`)
  }
  const stops = [
    store.subscribe('secrets', ({ object }) => {
      if (object) trackSecret(object as Secret)
    }),
    store.subscribe('serviceaccounts', ({ key }) => {
      for (const secret of store.list('secrets', key.namespace) as readonly Secret[]) trackSecret(secret)
    }),
  ]
  for (const secret of store.list('secrets') as readonly Secret[]) trackSecret(secret)
  return () => {
    for (const stop of stops) stop()
    queue.close()
  }

  async function run(id: string): Promise<void> {
    const [namespace = '', name = ''] = id.split('/')
    const secret = store.get({ resource: 'secrets', namespace, name }) as Secret | undefined
    if (!secret || secret.type !== TokenSecretType || secret.metadata.deletionTimestamp !== undefined) return
    const { annotations = {} } = secret.metadata
    const key = { resource: 'serviceaccounts', namespace, name: annotations[accountName] ?? '' }
    const account = store.get(key) as ServiceAccount | undefined
    const matchesAccount = account && (!annotations[accountUid] || annotations[accountUid] === account.metadata.uid)
    try {
      if (matchesAccount) await writeToken(secret, account)
      else await client.delete(Secret, { namespace, name }, { preconditions: { uid: secret.metadata.uid } })
    } catch (err) {
      // Another client wrote first, and that change triggers another run; or the Secret was deleted.
      if (!isReason(err, 'Conflict', 'NotFound')) throw err
    }
  }

  async function writeToken(secret: Secret, account: ServiceAccount): Promise<void> {
    const { data = {}, metadata } = secret
    const ca = rootCA === undefined ? data['ca.crt'] : base64(rootCA)
    if (data.token && data.namespace && data['ca.crt'] === ca) return
    await client.update(Secret, {
      ...secret,
      metadata: {
        ...metadata,
        annotations: { ...metadata.annotations, [accountName]: account.metadata.name, [accountUid]: account.metadata.uid },
      },
      data: {
        ...data,
        ...(ca === undefined ? {} : { 'ca.crt': ca }),
        namespace: data.namespace || base64(metadata.namespace ?? ''),
        token: data.token || base64(tokens.issueForSecret(account, metadata.name)),
      },
    })
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
