import { appendAll, type FieldError, forbidden, invalid, required } from '@capstan/kube'
import { blockErrors, contains, parseBlock } from '../addresses.ts'
import type { BuiltinKind } from '../builtin-kind.ts'
import { labelSelector, oneOf, portNameProblems, portNumber, problems } from '../checks.ts'
import { ageColumn, at, column, nameColumn, selectorText } from '../columns.ts'
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../schemas/types.ts'

const policyTypes = ['Ingress', 'Egress']

/** Upstream: pkg/apis/networking and pkg/registry/networking/networkpolicy, v1.36. */
export const networkpolicies: BuiltinKind<NetworkPolicy> = {
  generation: true,
  columns: [nameColumn, column('Pod-Selector', (o) => selectorText(at(o, 'spec', 'podSelector'))), ageColumn],
  default({ spec }) {
    for (const { ports = [] } of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
      for (const port of ports) port.protocol ??= 'TCP'
    }
    if (!spec.policyTypes?.length) spec.policyTypes = spec.egress?.length ? [...policyTypes] : ['Ingress']
  },
  validate({ spec }) {
    const { podSelector, ingress = [], egress = [], policyTypes: types = [] } = spec
    return [
      ...labelSelector('spec.podSelector', podSelector),
      ...ingress.flatMap(({ ports, from }, index) => ruleErrors(`spec.ingress[${index}]`, ports, 'from', from)),
      ...egress.flatMap(({ ports, to }, index) => ruleErrors(`spec.egress[${index}]`, ports, 'to', to)),
      ...(types.length > policyTypes.length
        ? [invalid('spec.policyTypes', types, 'may not specify more than two policyTypes')]
        : types.flatMap((type, index) => oneOf(`spec.policyTypes[${index}]`, type, policyTypes))),
    ]
  },
}

function ruleErrors(
  path: string,
  ports: readonly NetworkPolicyPort[] | undefined,
  side: 'from' | 'to',
  peers: readonly NetworkPolicyPeer[] | undefined,
): FieldError[] {
  return [
    ...(ports ?? []).flatMap((port, index) => portErrors(`${path}.ports[${index}]`, port)),
    ...(peers ?? []).flatMap((peer, index) => peerErrors(`${path}.${side}[${index}]`, peer)),
  ]
}

function portErrors(path: string, { protocol, port, endPort: end }: NetworkPolicyPort): FieldError[] {
  const errors = protocol === undefined ? [] : oneOf(`${path}.protocol`, protocol, ['TCP', 'UDP', 'SCTP'])
  const addEndPortError = (value: number, text: string) => errors.push(invalid(`${path}.endPort`, value, text))
  if (typeof port === 'number') {
    appendAll(errors, portNumber(`${path}.port`, port))
    if (end !== undefined) {
      // As upstream, this error contains the value of `port`.
      if (end < port) addEndPortError(port, 'must be greater than or equal to `port`')
      appendAll(errors, portNumber(`${path}.endPort`, end))
    }
  } else if (port === undefined) {
    if (end !== undefined) addEndPortError(end, 'may not be specified when `port` is not specified')
  } else {
    if (end !== undefined) addEndPortError(end, 'may not be specified when `port` is non-numeric')
    appendAll(errors, problems(`${path}.port`, port, portNameProblems(port)))
  }
  return errors
}

function peerErrors(path: string, { podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer): FieldError[] {
  const errors = [
    ...labelSelector(`${path}.podSelector`, podSelector),
    ...labelSelector(`${path}.namespaceSelector`, namespaceSelector),
    ...(ipBlock ? ipBlockErrors(`${path}.ipBlock`, ipBlock) : []),
  ]
  if (!podSelector && !namespaceSelector && !ipBlock) errors.push(required(path, 'must specify a peer'))
  else if (ipBlock && (podSelector || namespaceSelector)) {
    errors.push(forbidden(path, 'may not specify both ipBlock and another peer'))
  }
  return errors
}

function ipBlockErrors(path: string, { cidr, except = [] }: IPBlock): FieldError[] {
  if (cidr === '') return [required(`${path}.cidr`)]
  const errors = blockErrors(`${path}.cidr`, cidr, true)
  const outer = parseBlock(cidr)
  if (!outer) return errors
  for (const [index, text] of except.entries()) {
    const exceptPath = `${path}.except[${index}]`
    appendAll(errors, blockErrors(exceptPath, text, true))
    const inner = parseBlock(text)
    if (!inner || (contains(outer, inner.address) && inner.bits > outer.bits)) continue
    errors.push(invalid(exceptPath, text, 'must be a strict subset of `cidr`'))
  }
  return errors
}
