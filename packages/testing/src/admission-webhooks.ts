/** Admission in code, on a server that is not ours: the same functions behind webhooks. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Admission, Client, Json, KubeObject, Webhook } from '@capstan/kube'
import {
  diffJson,
  draft,
  invalidObject,
  messageOf,
  MutatingWebhookConfiguration,
  orAbsent,
  StatusError,
  systemClock,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'

export interface AdmissionWebhooks {
  /** Takes the configurations away again and stops listening. */
  close(): Promise<void>
}

interface Review {
  readonly request: {
    readonly uid: string
    readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
    readonly object: KubeObject | null
    readonly oldObject: KubeObject | null
    readonly dryRun?: boolean
  }
}

const name = 'capstan-tests'

/** Serves `admissions` on loopback and has the server of `client` ask them. */
export async function admissionWebhooks(client: Client, admissions: readonly Admission[]): Promise<AdmissionWebhooks> {
  const authority = await makeAuthority(systemClock, { commonName: name })
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: name,
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  const server = createServer({ cert: certificate, key }, (request, response) => {
    const [, phase, index] = (request.url ?? '').split(/[/?]/)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString()) as Review
      void answer(client, admissions[Number(index)]!, phase as Phase, review).then((answered) =>
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify(answered)),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const webhooks = (phase: Phase): Webhook[] =>
    admissions.flatMap(({ kind, operations = ['CREATE', 'UPDATE'], ...functions }, index) => {
      if (!functions[phase]) return []
      // Upstream: what is deleted is not defaulted.
      const asked = phase === 'default' ? operations.filter((one) => one !== 'DELETE') : operations
      return {
        name: `n${index}.${kind.plural}.${kind.group || 'core'}`,
        clientConfig: { url: `${url}/${phase}/${index}`, caBundle },
        rules: [{ operations: [...asked], apiGroups: [kind.group], apiVersions: [kind.version], resources: [kind.plural] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      }
    })
  const takeAway = async () => {
    for (const kind of [MutatingWebhookConfiguration, ValidatingWebhookConfiguration])
      await orAbsent(client.delete(kind, { name }))
  }
  // A test that was cut short has left its own.
  await takeAway()
  await client.create(MutatingWebhookConfiguration, { metadata: { name }, webhooks: webhooks('default') })
  await client.create(ValidatingWebhookConfiguration, { metadata: { name }, webhooks: webhooks('validate') })
  return {
    async close() {
      await takeAway()
      server.close()
      server.closeAllConnections()
    },
  }
}

type Phase = 'default' | 'validate'

async function answer(client: Client, admission: Admission, phase: Phase, { request }: Review): Promise<object> {
  const { uid, operation, object, oldObject, dryRun = false } = request
  const warnings: string[] = []
  const context = {
    operation,
    oldObject: oldObject ?? undefined,
    dryRun,
    reader: client,
    warn: (text: string) => void warnings.push(text),
  }
  const about = (object ?? oldObject)!
  const respond = (response: object) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, ...(warnings.length > 0 ? { warnings } : {}), ...response },
  })
  try {
    if (phase === 'default') {
      const changed = draft(about)
      await admission.default?.(changed, context)
      const patch = diffJson(about as unknown as Json, changed as unknown as Json)
      if (patch.length === 0) return respond({ allowed: true })
      return respond({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') })
    }
    const errors = (await admission.validate?.(about, context)) ?? []
    if (errors.length === 0) return respond({ allowed: true })
    return respond({ allowed: false, status: invalidObject(admission.kind, about.metadata.name ?? '', errors).status })
  } catch (err) {
    const refusal = err instanceof StatusError ? err : new StatusError('InternalError', messageOf(err))
    return respond({ allowed: false, status: refusal.status })
  }
}
