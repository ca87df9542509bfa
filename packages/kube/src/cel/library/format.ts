/** CEL library `format`: formats of names, label values, URIs, UUIDs, base64 and dates. Upstream: apiserver/pkg/cel/library/format.go. */
import {
  dns1035LabelProblems,
  dnsLabelProblems,
  labelValueProblems,
  qualifiedNameProblems,
  maskTrailingDash,
  subdomainProblems,
} from '../../names.ts'
import { formatCheck } from '../../structural/format.ts'
import type { Library } from '../signature.ts'
import { CelList, none, Opaque, Optional } from '../value.ts'

type Check = (text: string) => readonly string[]

class Format extends Opaque {
  readonly type = 'kubernetes.NamedFormat'
  readonly name: string
  readonly check: Check
  constructor(name: string, check: Check) {
    super()
    this.name = name
    this.check = check
  }
  equals(other: Opaque): boolean {
    return other instanceof Format && other.name === this.name
  }
}

/** Returns a check for prefixes of names (`generateName`). Such a prefix may end in a dash. */
const prefix =
  (check: Check): Check =>
  (text) =>
    check(maskTrailingDash(text))

const checkOfFormat =
  (format: string, problem: string): Check =>
  (text) =>
    formatCheck(format)!(text) ? [] : [problem]

const Formats: { readonly [name: string]: Check } = {
  dns1123Label: dnsLabelProblems,
  dns1123Subdomain: (text) => subdomainProblems(text),
  dns1035Label: dns1035LabelProblems,
  qualifiedName: qualifiedNameProblems,
  dns1123LabelPrefix: prefix(dnsLabelProblems),
  dns1123SubdomainPrefix: prefix((text) => subdomainProblems(text)),
  dns1035LabelPrefix: prefix(dns1035LabelProblems),
  labelValue: labelValueProblems,
  uri: checkOfFormat('uri', 'invalid URI'),
  uuid: checkOfFormat('uuid', 'does not match the UUID format'),
  byte: checkOfFormat('byte', 'invalid base64'),
  date: checkOfFormat('date', 'invalid date'),
  datetime: checkOfFormat('date-time', 'invalid datetime'),
}

const formatNamed = (name: string): Optional =>
  Object.hasOwn(Formats, name) ? new Optional(new Format(name, Formats[name]!)) : none

function validate({ check }: Format, text: string): Optional {
  const problems = check(text)
  return problems.length === 0 ? none : new Optional(new CelList(problems))
}

export const format: Library = {
  'format.named(string): optional<Format>': formatNamed,
  'Format.validate(string): optional<list<string>>': validate,
  ...Object.fromEntries(
    Object.entries(Formats).map(([name, check]) => [`format.${name}(): Format`, () => new Format(name, check)]),
  ),
}
