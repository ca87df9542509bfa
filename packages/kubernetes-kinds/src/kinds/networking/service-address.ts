/** IPAddresses and ServiceCIDRs. Upstream: pkg/registry/networking/{ipaddress,servicecidr}, v1.36. */
import { type FieldError, invalid, pathSegmentProblems, required, subdomainProblems } from '@capstan/kube'
import { addressProblems, blockErrors, parseBlock } from '../addresses.ts'
import type { BuiltinKind } from '../builtin-kind.ts'
import { problems } from '../checks.ts'
import { ageColumn, at, column, list, nameColumn } from '../columns.ts'
import { same } from '../same.ts'
import type { IPAddress, ParentReference, ServiceCIDR, ServiceCIDRSpec } from '../schemas/types.ts'

export const ipaddresses: BuiltinKind<IPAddress> = {
  names: addressProblems,
  columns: [
    nameColumn,
    column('ParentRef', (o) => {
      const parent = at(o, 'spec', 'parentRef') as ParentReference | undefined
      if (!parent) return '<none>'
      const { group = '', resource, namespace, name } = parent
      return [`${resource}${group === '' ? '' : `.${group}`}`.toLowerCase(), namespace, name].filter(Boolean).join('/')
    }),
  ],
  validate({ spec }, old) {
    const path = 'spec.parentRef'
    const parent = spec.parentRef as ParentReference | undefined
    if (old) return same(parent, old.spec.parentRef) ? [] : [invalid(path, asInGo(parent), 'field is immutable')]
    if (!parent) return [required(path)]
    const { group = '', resource, namespace = '', name } = parent
    const segment = (field: 'resource' | 'name', value: string | undefined): FieldError[] =>
      value ? problems(`${path}.${field}`, value, pathSegmentProblems(value)) : [required(`${path}.${field}`)]
    return [
      ...(group === '' ? [] : problems(`${path}.group`, group, subdomainProblems(group))),
      ...segment('resource', resource),
      ...segment('name', name),
      ...problems(`${path}.namespace`, namespace, pathSegmentProblems(namespace)),
    ]
  },
}

/** Returns a reference as upstream's error prints it: as a Go struct. */
const asInGo = (parent: Partial<ParentReference> | undefined) =>
  parent && {
    Group: parent.group ?? '',
    Resource: parent.resource ?? '',
    Namespace: parent.namespace ?? '',
    Name: parent.name ?? '',
  }

export const servicecidrs: BuiltinKind<ServiceCIDR> = {
  columns: [nameColumn, column('CIDRs', (o) => list<string>(o, 'spec', 'cidrs').join(',')), ageColumn],
  validate({ spec }, old, { subresource }) {
    if (subresource === 'status') return []
    return old ? changedErrors(spec, old.spec) : specErrors(spec)
  },
}

function specErrors({ cidrs = [] }: ServiceCIDRSpec): FieldError[] {
  const path = 'spec.cidrs'
  if (cidrs.length === 0) return [required(path, 'at least one CIDR required')]
  if (cidrs.length > 2) return [invalid(path, { CIDRs: cidrs }, 'may only hold up to 2 values')]
  const [first, second] = cidrs.map((text) => parseBlock(text)?.family)
  const text = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'
  return [
    ...cidrs.flatMap((cidr, index) => blockErrors(`${path}[${index}]`, cidr, false)),
    ...(first !== undefined && first === second ? [invalid(path, cidrs, text)] : []),
  ]
}

/** Returns errors for all changes of the CIDRs except the addition of a second IP family. */
function changedErrors(spec: ServiceCIDRSpec, { cidrs: old = [] }: ServiceCIDRSpec): FieldError[] {
  const { cidrs = [] } = spec
  const isAddition = old.length === 1 && cidrs.length === 2
  if (old.length !== cidrs.length && !isAddition) return [invalid('spec.cidrs', cidrs, 'field is immutable')]
  const changed = old.flatMap((text, index) =>
    cidrs[index] === text ? [] : [invalid(`spec.cidrs[${index}]`, cidrs[index], 'field is immutable')],
  )
  return isAddition ? [...changed, ...specErrors(spec)] : changed
}
