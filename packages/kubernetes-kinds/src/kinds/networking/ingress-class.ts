import { appendAll, dnsLabelProblems, type FieldError, forbidden, required, tooLong } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { oneOf, problems } from '../checks.ts'
import { ageColumn, at, column, nameColumn, text } from '../columns.ts'
import { domainPathProblems } from '../domain-path.ts'
import { immutable } from '../same.ts'
import type { IngressClass, IngressClassParametersReference } from '../schemas/types.ts'
import { referenceErrors } from './backend.ts'

const MaxControllerLength = 250

/** Upstream: pkg/apis/networking and pkg/registry/networking/ingressclass, v1.36. */
export const ingressclasses: BuiltinKind<IngressClass> = {
  generation: true,
  columns: [
    {
      ...nameColumn,
      cell: ({ metadata: { name, annotations = {} } }) =>
        annotations['ingressclass.kubernetes.io/is-default-class'] === 'true' ? `${name} (default)` : name,
    },
    column('Controller', (o) => text(o, 'spec', 'controller')),
    column('Parameters', (o) => {
      const parameters = at(o, 'spec', 'parameters') as IngressClassParametersReference | undefined
      if (!parameters) return '<none>'
      const { apiGroup, kind, name } = parameters
      return `${kind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`
    }),
    ageColumn,
  ],
  default({ spec: { parameters } }) {
    if (parameters) parameters.scope ??= 'Cluster'
  },
  validate({ spec: { controller = '', parameters } }, old) {
    const path = 'spec.controller'
    return [
      ...(old ? immutable(path, controller, old.spec.controller ?? '') : []),
      ...(controller.length > MaxControllerLength ? [tooLong(path, MaxControllerLength)] : []),
      ...(controller === '' ? [required(path)] : problems(path, controller, domainPathProblems(controller))),
      ...(parameters ? parameterErrors('spec.parameters', parameters) : []),
    ]
  },
}

function parameterErrors(path: string, parameters: IngressClassParametersReference): FieldError[] {
  const { scope, namespace } = parameters
  const errors = referenceErrors(path, parameters)
  appendAll(errors, oneOf(`${path}.scope`, scope, ['Cluster', 'Namespace']))
  if (scope === 'Namespace') {
    if (namespace === undefined) errors.push(required(`${path}.namespace`, "`parameters.scope` is set to 'Namespace'"))
    else appendAll(errors, problems(`${path}.namespace`, namespace, dnsLabelProblems(namespace)))
  }
  if (scope === 'Cluster' && namespace !== undefined) {
    errors.push(forbidden(`${path}.namespace`, "`parameters.scope` is set to 'Cluster'"))
  }
  return errors
}
