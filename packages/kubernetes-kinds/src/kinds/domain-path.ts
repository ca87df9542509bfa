import { subdomainProblems } from '@capstan/kube'

/** Validates names with a domain prefix, such as `acme.io/foo`. Upstream: IsDomainPrefixedPath. */
export function domainPathProblems(name: string): string[] {
  const [domain = '', ...path] = name.split('/')
  const pathText = path.join('/')
  if (domain === '' || pathText === '') return ['must be a domain-prefixed path (such as "acme.io/foo")']
  const texts = subdomainProblems(domain)
  if (texts.length > 0) return texts
  return /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(pathText)
    ? []
    : ["Invalid path (e.g. '/path', regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"]
}
