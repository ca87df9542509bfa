import { isIP } from 'node:net'
import {
  appendAll,
  type FieldError,
  invalid,
  notSupported,
  required,
  subdomainProblems,
  wildcardSubdomainProblems,
} from '@capstan/kube'
import { addressErrors } from '../addresses.ts'
import type { BuiltinKind } from '../builtin-kind.ts'
import { problems } from '../checks.ts'
import { ageColumn, column, list, nameColumn, orNone, text } from '../columns.ts'
import type {
  HTTPIngressPath,
  Ingress,
  IngressLoadBalancerIngress,
  IngressRule,
  IngressSpec,
  IngressTLS,
} from '../schemas/types.ts'
import { backendErrors } from './backend.ts'

const classAnnotation = 'kubernetes.io/ingress.class'
const notAnAddress = 'must be a DNS name, not an IP address'

/** Columns, warnings and validation of Ingresses. Upstream: pkg/apis/networking and pkg/registry/networking/ingress, v1.36. */
export const ingresses: BuiltinKind<Ingress> = {
  generation: true,
  columns: [
    nameColumn,
    column('Class', (o) => orNone(text(o, 'spec', 'ingressClassName'))),
    column('Hosts', (o) => hosts(list<IngressRule>(o, 'spec', 'rules'))),
    column('Address', (o) => loadBalancerAddresses(list<IngressLoadBalancerIngress>(o, 'status', 'loadBalancer', 'ingress'))),
    column('Ports', (o) => (list(o, 'spec', 'tls').length > 0 ? '80, 443' : '80')),
    ageColumn,
  ],
  warnings: ({ metadata: { annotations = {} } }, old) =>
    !old && annotations[classAnnotation] !== undefined
      ? [`annotation "${classAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
  validate({ metadata, spec, status }, old, { subresource }) {
    if (subresource === 'status') return (status.loadBalancer.ingress ?? []).flatMap(loadBalancerErrors)
    const annotatedClass = metadata.annotations?.[classAnnotation]
    const { ingressClassName } = spec
    return [
      ...specErrors(spec),
      ...(!old && annotatedClass !== undefined && ingressClassName !== undefined && annotatedClass !== ingressClassName
        ? [invalid(`annotations.${classAnnotation}`, annotatedClass, 'must match `ingressClassName` when both are specified')]
        : []),
    ]
  },
}

function hosts(rules: readonly IngressRule[]): string {
  const named = rules.flatMap(({ host }, index) => (host ? [{ host, index }] : []))
  const listed = named.slice(0, 3)
  if (listed.length === 0) return '*'
  const hasMore = listed.length === 3 && listed[2]!.index < rules.length - 1
  return `${listed.map(({ host }) => host).join(',')}${hasMore ? ` + ${rules.length - 3} more...` : ''}`
}

const loadBalancerAddresses = (ingress: readonly IngressLoadBalancerIngress[]): string =>
  [...new Set(ingress.map(({ ip, hostname }) => ip || hostname || '').filter(Boolean))].toSorted().join(',')

function loadBalancerErrors({ ip, hostname }: IngressLoadBalancerIngress, index: number): FieldError[] {
  const path = `status.loadBalancer.ingress[${index}]`
  return [
    ...(ip ? addressErrors(`${path}.ip`, ip) : []),
    ...(hostname ? problems(`${path}.hostname`, hostname, subdomainProblems(hostname)) : []),
    ...(hostname && isIP(hostname) !== 0 ? [invalid(`${path}.hostname`, hostname, notAnAddress)] : []),
  ]
}

function specErrors({ rules = [], defaultBackend, tls = [], ingressClassName: name }: IngressSpec): FieldError[] {
  return [
    ...(rules.length === 0 && !defaultBackend
      ? [invalid('spec', null, 'either `defaultBackend` or `rules` must be specified')]
      : []),
    ...(defaultBackend ? backendErrors('spec.defaultBackend', defaultBackend) : []),
    ...rules.flatMap(ruleErrors),
    ...tls.flatMap(tlsErrors),
    ...(name === undefined ? [] : problems('spec.ingressClassName', name, subdomainProblems(name))),
  ]
}

const hostProblems = (host: string): string[] => (host.includes('*') ? wildcardSubdomainProblems(host) : subdomainProblems(host))

function ruleErrors({ host, http }: IngressRule, index: number): FieldError[] {
  const path = `spec.rules[${index}]`
  const errors: FieldError[] = []
  if (host) {
    if (isIP(host) !== 0) errors.push(invalid(`${path}.host`, host, notAnAddress))
    appendAll(errors, problems(`${path}.host`, host, hostProblems(host)))
  }
  if (!http) return errors
  const { paths = [] } = http
  if (paths.length === 0) errors.push(required(`${path}.http.paths`))
  for (const [pathIndex, ingressPath] of paths.entries())
    appendAll(errors, pathErrors(`${path}.http.paths[${pathIndex}]`, ingressPath))
  return errors
}

const forbiddenSequences = ['//', '/./', '/../', '%2f', '%2F']
const forbiddenEnds = ['/..', '/.']

function pathErrors(field: string, { path = '', pathType, backend }: HTTPIngressPath): FieldError[] {
  if (!pathType) return [required(`${field}.pathType`, 'pathType must be specified')]
  const errors: FieldError[] = []
  const addError = (problem: string) => errors.push(invalid(`${field}.path`, path, problem))
  if (pathType === 'Exact' || pathType === 'Prefix') {
    if (!path.startsWith('/')) addError('must be an absolute path')
    for (const sequence of forbiddenSequences) if (path.includes(sequence)) addError(`must not contain '${sequence}'`)
    for (const end of forbiddenEnds) if (path.endsWith(end)) addError(`cannot end with '${end}'`)
  } else if (pathType === 'ImplementationSpecific') {
    if (path !== '' && !path.startsWith('/')) addError('must be an absolute path')
  } else errors.push(notSupported(`${field}.pathType`, pathType, ['Exact', 'ImplementationSpecific', 'Prefix']))
  appendAll(errors, backendErrors(`${field}.backend`, backend))
  return errors
}

function tlsErrors({ hosts: names = [], secretName }: IngressTLS, index: number): FieldError[] {
  const path = `spec.tls[${index}]`
  return [
    ...names.flatMap((host, hostIndex) => problems(`${path}.hosts[${hostIndex}]`, host, hostProblems(host))),
    ...(secretName ? problems(`${path}.secretName`, secretName, subdomainProblems(secretName)) : []),
  ]
}
