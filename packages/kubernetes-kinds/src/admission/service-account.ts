/**
 * Admission plugin for the service accounts of new pods. Upstream: plugin/pkg/admission/serviceaccount.
 *
 * Rejects a mirror pod that references a service account or a Secret, or projects a service account token into a volume. For other pods:
 * - Sets the service account `default` in a pod that names none, and requires that the service account exists.
 * - Mounts a token of the service account into each container that mounts nothing at the path of the token, unless
 *   automountServiceAccountToken is false: that of the pod or, if the pod has none, that of the service account.
 * - Copies the imagePullSecrets of the service account to a pod that has none.
 * - If the service account has the annotation `kubernetes.io/enforce-mountable-secrets: "true"`, rejects a pod that references a Secret that
 *   the service account does not list.
 *
 * References to Secrets are those in imagePullSecrets, in environment variables of containers, and in volumes of type `secret`.
 */
import { type Clock, isRecord, type KubeObject, notFound, randomSuffix, type UnknownObject } from '@capstan/kube'
import { type Store, forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'

type Fields = Record<string, unknown>

interface Account extends KubeObject {
  readonly automountServiceAccountToken?: boolean
  readonly imagePullSecrets?: readonly { readonly name: string }[]
  readonly secrets?: readonly { readonly name: string }[]
}

/** Path at which client libraries read their token and the CA certificate. */
const tokenPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const volumePrefix = 'kube-api-access-'
const mirrorAnnotation = 'kubernetes.io/config.mirror'
const enforceAnnotation = 'kubernetes.io/enforce-mountable-secrets'

export const serviceAccount: Plugin = {
  name: 'ServiceAccount',
  appliesTo: ({ storage }) => storage === 'pods',
  async mutate(write) {
    if (!isNewPod(write) || isMirror(write.object)) return
    const spec = specOf(write.object)
    spec.serviceAccountName ||= 'default'
    // serviceAccount is the deprecated name of serviceAccountName. Upstream's conversion gives both fields the same value.
    spec.serviceAccount = spec.serviceAccountName
    const account = await accountOf(write, spec.serviceAccountName as string)
    if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(write, spec)
    if (listOf(spec.imagePullSecrets).length === 0 && account.imagePullSecrets?.length) {
      spec.imagePullSecrets = account.imagePullSecrets.map(({ name }) => ({ name }))
    }
  },
  async validate(write) {
    if (!isNewPod(write)) return
    const spec = specOf(write.object)
    if (isMirror(write.object)) {
      const problem = mirrorProblem(spec)
      if (problem !== undefined) throw forbidden(write, problem)
      return
    }
    if (!spec.serviceAccountName)
      throw forbidden(write, `no service account specified for pod ${write.namespace}/${write.object.metadata.name ?? ''}`)
    const account = await accountOf(write, spec.serviceAccountName as string)
    const value = account.metadata.annotations?.[enforceAnnotation] ?? ''
    // The values that Go's strconv.ParseBool accepts as true.
    const problem = ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value) ? secretProblem(account, spec) : undefined
    if (problem !== undefined) throw forbidden(write, problem)
  },
}

const isNewPod = ({ operation, subresource }: PluginWrite): boolean => operation === 'CREATE' && subresource === undefined

const isMirror = ({ metadata }: UnknownObject): boolean => metadata.annotations?.[mirrorAnnotation] !== undefined

const specOf = (pod: UnknownObject): Fields => {
  if (!isRecord(pod.spec)) pod.spec = {}
  return pod.spec as Fields
}

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isRecord) : [])

/**
 * Returns the account. Waits up to `AccountWait` for a missing account `default`.
 * @throws StatusError Forbidden when the account does not exist
 */
async function accountOf(write: PluginWrite, name: string): Promise<Account> {
  const { store, clock, namespace = '' } = write
  const key = { resource: 'serviceaccounts', namespace, name }
  const account = store.get(key) ?? (name === 'default' ? await waitFor(store, clock, key) : undefined)
  if (account) return account as Account
  const { message } = notFound({ group: '', plural: 'serviceaccount' }, name)
  throw forbidden(write, `error looking up service account ${namespace}/${name}: ${message}`)
}

/**
 * Milliseconds to wait for the account `default`, which a controller creates after the namespace. Upstream: ten attempts, 100
 * to 200 ms apart.
 */
const AccountWait = 1_500

const waitFor = (store: Store, clock: Clock, key: Parameters<Store['get']>[0]): Promise<KubeObject | undefined> =>
  new Promise((resolve) => {
    const done = (object: KubeObject | undefined) => {
      stop()
      timer.cancel()
      resolve(object)
    }
    const stop = store.subscribe(key.resource, ({ key: { namespace, name }, object }) => {
      if (object && namespace === key.namespace && name === key.name) done(object)
    })
    const timer = clock.schedule(AccountWait, () => done(undefined))
  })

function mountToken({ random }: PluginWrite, spec: Fields): void {
  const volumes = listOf(spec.volumes)
  const existing = volumes.find(({ name }) => typeof name === 'string' && name.startsWith(volumePrefix))
  const name = (existing?.name as string | undefined) ?? `${volumePrefix}${randomSuffix(random)}`
  let isNeeded = false
  for (const container of [...listOf(spec.initContainers), ...listOf(spec.containers)]) {
    const mounts = listOf(container.volumeMounts)
    if (mounts.some(({ mountPath }) => mountPath === tokenPath)) continue
    container.volumeMounts = [...mounts, { name, readOnly: true, mountPath: tokenPath }]
    isNeeded = true
  }
  if (existing || !isNeeded) return
  spec.volumes = [...volumes, { name, projected: tokenVolume() }]
}

const tokenVolume = () => ({
  sources: [
    { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    { downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] } },
  ],
  defaultMode: 0o644,
})

/** Returns the error text for a mirror pod that references a service account or a Secret, or projects a token; otherwise `undefined`. */
function mirrorProblem(spec: Fields): string | undefined {
  if (spec.serviceAccountName) return 'a mirror pod may not reference service accounts'
  if (secretsOf(spec).length > 0 || listOf(spec.imagePullSecrets).length > 0) return 'a mirror pod may not reference secrets'
  const sources = listOf(spec.volumes).flatMap(({ projected }) => (isRecord(projected) ? listOf(projected.sources) : []))
  if (sources.some(({ serviceAccountToken }) => serviceAccountToken !== undefined))
    return 'a mirror pod may not use ServiceAccountToken volume projections'
  return undefined
}

const nameOf = (value: unknown): string => (typeof value === 'string' ? value : '')

interface SecretUse {
  readonly secret: string
  /** The part of the pod that references the Secret, for the error message. */
  readonly by: string
}

/** Returns the Secrets that volumes of type `secret` and environment variables reference. */
function secretsOf(spec: Fields): SecretUse[] {
  const volumes = listOf(spec.volumes).flatMap(({ secret }) =>
    isRecord(secret) ? [{ secret: nameOf(secret.secretName), by: 'volume with' }] : [],
  )
  const containers = (list: unknown, containerType: string) =>
    listOf(list).flatMap(({ name, env, envFrom }) => [
      ...listOf(env).flatMap((variable) => {
        const ref = isRecord(variable.valueFrom) ? variable.valueFrom.secretKeyRef : undefined
        const by = `${containerType} ${String(name)} with envVar ${String(variable.name)} referencing`
        return isRecord(ref) ? [{ secret: nameOf(ref.name), by }] : []
      }),
      ...listOf(envFrom).flatMap(({ secretRef }) =>
        isRecord(secretRef)
          ? [{ secret: nameOf(secretRef.name), by: `${containerType} ${String(name)} with envFrom referencing` }]
          : [],
      ),
    ])
  return [...volumes, ...containers(spec.initContainers, 'init container'), ...containers(spec.containers, 'container')]
}

/** Returns the error text for the first Secret of the pod that the account does not list; `undefined` if it lists all. */
function secretProblem({ metadata, secrets = [], imagePullSecrets = [] }: Account, spec: Fields): string | undefined {
  const mountable = new Set(secrets.map(({ name }) => name))
  const unlistedUse = secretsOf(spec).find(({ secret }) => !mountable.has(secret))
  if (unlistedUse) {
    return `${unlistedUse.by} secret.secretName="${unlistedUse.secret}" is not allowed because service account ${metadata.name} does not reference that secret`
  }
  const listedNames = new Set(imagePullSecrets.map(({ name }) => name))
  const index = listOf(spec.imagePullSecrets).findIndex(({ name }) => !listedNames.has(name as string))
  if (index < 0) return undefined
  const { name } = listOf(spec.imagePullSecrets)[index]!
  return `imagePullSecrets[${index}].name="${String(name)}" is not allowed because service account ${metadata.name} does not reference that imagePullSecret`
}
