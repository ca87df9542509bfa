/** The kinds of `certificates.k8s.io/v1`. Upstream: pkg/apis/certificates and pkg/registry/certificates, v1.36. */
import {
  appendAll,
  dnsLabelProblems,
  type FieldError,
  forbidden,
  humanDuration,
  invalid,
  messageOf,
  notSupported,
  required,
  seconds,
  subdomainProblems,
  timestamp,
  tooLong,
} from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { certificateProblem, decodedPem, parseSigningRequest } from './certificates/request.ts'
import { oneOf } from './checks.ts'
import { ageColumn, at, column, field, list, nameColumn, orNone, text } from './columns.ts'
import { same, unique } from './same.ts'
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition as Condition,
  CertificateSigningRequestSpec,
} from './schemas/types.ts'

const certificatesigningrequests: BuiltinKind<CertificateSigningRequest> = {
  names: () => [],
  selectableFields: { 'spec.signerName': field('spec', 'signerName') },
  unknownFieldSelector: (name) => `field label not supported: ${name}`,
  columns: [
    nameColumn,
    ageColumn,
    column('SignerName', (o) => orNone(text(o, 'spec', 'signerName'))),
    column('Requestor', (o) => text(o, 'spec', 'username')),
    column('RequestedDuration', (o) => {
      const duration = at(o, 'spec', 'expirationSeconds')
      return typeof duration === 'number' ? humanDuration(seconds(duration)) : '<none>'
    }),
    column('Condition', (o) =>
      stateOf(
        list<Condition>(o, 'status', 'conditions').map(({ type }) => type),
        text(o, 'status', 'certificate') !== '',
      ),
    ),
  ],
  resetFields: {
    '': [['spec'], ['status']],
    status: [['spec'], ['status', 'conditions']],
    approval: [['spec'], ['status', 'certificate']],
  },
  subresourceWrites: {
    status(request, old) {
      request.spec = old.spec
    },
    approval(request, old) {
      request.spec = old.spec
      const { conditions } = request.status
      request.status = { ...old.status, ...(conditions ? { conditions } : {}) }
      if (!conditions) delete request.status.conditions
    },
  },
  prepare(request, old, { subresource, caller, server }) {
    if (!old) {
      const { username: _username, uid: _uid, groups: _groups, extra: _extra, ...spec } = request.spec
      const { name, uid, groups, extra = {} } = caller
      request.spec = {
        ...spec,
        username: name,
        ...(uid ? { uid } : {}),
        groups: [...groups],
        ...(Object.keys(extra).length > 0 ? { extra: extra as { [key: string]: string[] } } : {}),
      }
      request.status = {}
    } else if (subresource === undefined) {
      request.spec = old.spec
      request.status = old.status
    } else {
      if (subresource === 'status') keepDecisions(request, old)
      setTimes(request, old, timestamp(server.clock.now()))
    }
  },
  validate(request, old, { subresource }) {
    const { spec, status } = request
    const isNew = status.certificate !== old?.status.certificate
    const problem = isNew && status.certificate ? certificateProblem(decodedPem(status.certificate)) : undefined
    return [
      ...specErrors(spec, old?.spec.signerName),
      ...conditionErrors(status.conditions ?? [], old?.status.conditions ?? []),
      ...(problem === undefined ? [] : [invalid('status.certificate', '<certificate data>', problem)]),
      ...(old ? changeErrors(request, old, subresource) : []),
    ]
  },
}

function stateOf(types: readonly string[], isIssued: boolean): string {
  const decision = types.includes('Denied') ? 'Denied' : types.includes('Approved') ? 'Approved' : 'Pending'
  return [decision, ...(types.includes('Failed') ? ['Failed'] : []), ...(isIssued ? ['Issued'] : [])].join(',')
}

const ofType = (conditions: readonly Condition[] | undefined, type: string): Condition[] =>
  (conditions ?? []).filter((condition) => condition.type === type)

/**
 * Restores the conditions Approved and Denied: writes of the subresource `status`, by which signers issue certificates, cannot change them.
 * Does not restore such a condition if the write adds or removes it: validation rejects this write.
 */
function keepDecisions({ status }: CertificateSigningRequest, { status: old }: CertificateSigningRequest): void {
  for (const type of ['Approved', 'Denied']) {
    const before = ofType(old.conditions, type)
    if (before.length !== ofType(status.conditions, type).length) continue
    let next = 0
    status.conditions = (status.conditions ?? []).map((condition) => (condition.type === type ? before[next++]! : condition))
  }
  if (status.conditions?.length === 0) delete status.conditions
}

function setTimes({ status }: CertificateSigningRequest, { status: old }: CertificateSigningRequest, now: string): void {
  if (!status.conditions) return
  const keyOf = ({ type, status }: { type: string; status: string }) => JSON.stringify([type, status])
  // Reversed, so that the first of several conditions with the same key is used.
  const oldConditions = new Map((old.conditions ?? []).toReversed().map((oldCondition) => [keyOf(oldCondition), oldCondition]))
  status.conditions = status.conditions.map((condition) => {
    const before = oldConditions.get(keyOf(condition))
    return {
      ...condition,
      lastUpdateTime: condition.lastUpdateTime ?? now,
      lastTransitionTime: condition.lastTransitionTime ?? before?.lastTransitionTime ?? now,
    }
  })
}

const Usages = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
]

function specErrors(spec: CertificateSigningRequestSpec, oldSigner: string | undefined): FieldError[] {
  const { usages = [], signerName, expirationSeconds: duration } = spec
  const request = spec.request as string | undefined
  const errors: FieldError[] = []
  try {
    parseSigningRequest(decodedPem(request ?? ''))
  } catch (err) {
    errors.push(invalid('spec.request', request || null, messageOf(err)))
  }
  if (usages.length === 0) errors.push(required('spec.usages'))
  for (const [index, usage] of usages.entries()) appendAll(errors, oneOf(`spec.usages[${index}]`, usage, Usages))
  appendAll(
    errors,
    unique(usages, (index) => `spec.usages[${index}]`),
  )
  const legacy = 'kubernetes.io/legacy-unknown'
  if (signerName === legacy && oldSigner !== legacy) {
    errors.push(invalid('spec.signerName', signerName, 'the legacy signerName is not allowed via this API version'))
  } else appendAll(errors, signerErrors('spec.signerName', signerName))
  if (duration !== undefined && duration < 600) {
    const text = 'may not specify a duration less than 600 seconds (10 minutes)'
    errors.push(invalid('spec.expirationSeconds', duration, text))
  }
  return errors
}

/** Validates the name of a signer. Upstream: ValidateSignerName. */
function signerErrors(path: string, signer: string): FieldError[] {
  if (signer === '') return [required(path)]
  const [domain = '', name = '', ...extraSegments] = signer.split('/')
  if (!signer.includes('/') || extraSegments.length > 0) {
    return [invalid(path, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
  }
  const labelled = (value: string, problemsOf: (label: string) => string[]): FieldError[] => {
    const label = value.split('.').find((part) => problemsOf(part).length > 0)
    if (label === undefined) return []
    return problemsOf(label).map((problem) => invalid(path, value, `validating label ${JSON.stringify(label)}: ${problem}`))
  }
  return [
    ...(domain.length > 253 ? [tooLong(path, 253)] : []),
    ...labelled(domain, dnsLabelProblems),
    ...(domain.includes('.') ? [] : [invalid(path, domain, 'should be a domain with at least two segments separated by dots')]),
    ...labelled(name, (label) => subdomainProblems(label)),
    ...(signer.length > 571 ? [tooLong(path, 571)] : []),
  ]
}

const States = ['False', 'True', 'Unknown']

function conditionErrors(conditions: readonly Condition[], old: readonly Condition[]): FieldError[] {
  const path = 'status.conditions'
  const errors: FieldError[] = []
  const decisions = new Set<string>()
  const isContradictory = ofType(old, 'Approved').length > 0 && ofType(old, 'Denied').length > 0
  for (const [index, { type, status }] of conditions.entries()) {
    const conditionPath = `${path}[${index}]`
    if (!type) errors.push(required(`${conditionPath}.type`))
    const allowed = ['Approved', 'Denied', 'Failed'].includes(type) ? ['True'] : States
    if (!status) errors.push(required(`${conditionPath}.status`))
    else if (!allowed.includes(status)) errors.push(notSupported(`${conditionPath}.status`, status, allowed))
    if (type !== 'Approved' && type !== 'Denied') continue
    if (!isContradictory && decisions.has(type === 'Approved' ? 'Denied' : 'Approved')) {
      errors.push(invalid(path, type, 'Approved and Denied conditions are mutually exclusive'))
    }
    decisions.add(type)
  }
  appendAll(
    errors,
    unique(
      conditions.map(({ type }) => type),
      (index) => `${path}[${index}].type`,
    ),
  )
  return errors
}

function changeErrors(
  { status }: CertificateSigningRequest,
  { status: old }: CertificateSigningRequest,
  subresource: string | undefined,
): FieldError[] {
  const path = 'status.conditions'
  const errors: FieldError[] = []
  const compare = (type: string) => [ofType(status.conditions, type), ofType(old.conditions, type)] as const
  for (const type of ['Approved', 'Denied', 'Failed']) {
    const [now, before] = compare(type)
    if (now.length < before.length) errors.push(forbidden(path, `updates may not remove a condition of type "${type}"`))
  }
  if (subresource !== 'approval') {
    for (const type of ['Approved', 'Denied']) {
      const [now, before] = compare(type)
      if (now.length > before.length) errors.push(forbidden(path, `updates may not add a condition of type "${type}"`))
      else if (now.length === before.length && !same(now, before)) {
        errors.push(forbidden(path, `updates may not modify a condition of type "${type}"`))
      }
    }
  }
  if (status.certificate !== old.certificate) {
    const certificate = 'status.certificate'
    if (subresource !== 'status') errors.push(forbidden(certificate, 'updates may not set certificate content'))
    else if (old.certificate) errors.push(forbidden(certificate, 'updates may not modify existing certificate content'))
  }
  return errors
}

export const certificates: KindTable = { certificatesigningrequests }
