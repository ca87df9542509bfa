/** The kinds of `apiregistration.k8s.io/v1`. Upstream: kube-aggregator, pkg/apis/apiregistration and pkg/registry/apiservice, v0.36. */
import {
  dns1035LabelProblems,
  type FieldError,
  invalid,
  pathSegmentProblems,
  required,
  subdomainProblems,
  timestamp,
} from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { oneOf, problems } from './checks.ts'
import { ageColumn, at, column, list, nameColumn } from './columns.ts'
import type { APIService, APIServiceCondition, APIServiceSpec, KubeaggregatorV1ServiceReference } from './schemas/types.ts'

const apiservices: BuiltinKind<APIService> = {
  names: pathSegmentProblems,
  columns: [
    nameColumn,
    column('Service', (o) => {
      const service = at(o, 'spec', 'service') as KubeaggregatorV1ServiceReference | undefined
      return service ? `${service.namespace}/${service.name}` : 'Local'
    }),
    column('Available', (o) => {
      const condition = list<APIServiceCondition>(o, 'status', 'conditions').find(({ type }) => type === 'Available')
      if (!condition) return 'Unknown'
      return condition.status === 'True' ? 'True' : `${condition.status} (${condition.reason})`
    }),
    ageColumn,
  ],
  default({ spec: { service } }) {
    if (service) service.port ??= 443
  },
  prepare(apiService, old, { server }) {
    if (old || apiService.spec.service) return
    const available: APIServiceCondition = {
      type: 'Available',
      status: 'True',
      lastTransitionTime: timestamp(server.clock.now()),
      reason: 'Local',
      message: 'Local APIServices are always available',
    }
    apiService.status = { conditions: [available] }
  },
  validate({ metadata: { name }, spec, status }, _, { subresource }) {
    if (subresource === 'status') {
      return (status.conditions ?? []).flatMap((condition, index) =>
        oneOf(`status.conditions[${index}].status`, condition.status, ['True', 'False', 'Unknown']),
      )
    }
    const expected = `${spec.version ?? ''}.${spec.group ?? ''}`
    const text = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(expected)}`
    return [...(name === expected ? [] : [invalid('metadata.name', name, text)]), ...specErrors(spec)]
  },
}

function specErrors(spec: APIServiceSpec): FieldError[] {
  const { group = '', version = '', service, caBundle, insecureSkipTLSVerify: isInsecure = false } = spec
  return [
    ...(group === '' && version !== 'v1'
      ? [required('spec.group', 'only v1 may have an empty group and it better be legacy kube')]
      : []),
    ...(group === '' ? [] : problems('spec.group', group, subdomainProblems(group))),
    ...problems('spec.version', version, dns1035LabelProblems(version)),
    ...withinErrors('spec.groupPriorityMinimum', spec.groupPriorityMinimum, 20_000),
    ...withinErrors('spec.versionPriority', spec.versionPriority, 1000),
    ...(service
      ? [...serviceErrors(service), ...(isInsecure && caBundle ? [insecure('may not be true if caBundle is present')] : [])]
      : [
          ...(caBundle
            ? [
                invalid(
                  'spec.caBundle',
                  `${Buffer.from(caBundle, 'base64').length} bytes`,
                  'local APIServices may not have a caBundle',
                ),
              ]
            : []),
          ...(isInsecure ? [insecure('local APIServices may not have insecureSkipTLSVerify')] : []),
        ]),
  ]
}

const insecure = (problem: string): FieldError => invalid('spec.insecureSkipTLSVerify', true, problem)

const withinErrors = (path: string, value: number, maximum: number): FieldError[] =>
  value > 0 && value <= maximum ? [] : [invalid(path, value, `must be positive and less than ${maximum}`)]

function serviceErrors({ namespace, name, port = 0 }: KubeaggregatorV1ServiceReference): FieldError[] {
  const path = 'spec.service'
  return [
    ...(namespace ? [] : [required(`${path}.namespace`)]),
    ...(name ? [] : [required(`${path}.name`)]),
    ...(port >= 1 && port <= 65_535
      ? []
      : [invalid(`${path}.port`, port, 'port is not valid: must be between 1 and 65535, inclusive')]),
  ]
}

export const apiregistration: KindTable = { apiservices }
