/** Returns the error text of Go's url.ParseRequestURI for a URL or path; `undefined` when it is valid. */
export function requestUriProblem(text: string): string | undefined {
  const problem = problemOf(text)
  return problem === undefined ? undefined : `parse ${JSON.stringify(text)}: ${problem}`
}

function problemOf(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) return 'net/url: invalid control character in URL'
  if (text === '') return 'empty url'
  if (text === '*') return undefined
  if (text.startsWith(':')) return 'missing protocol scheme'
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0] ?? ''
  const [rest = ''] = text.slice(scheme.length).split('?')
  if (!rest.startsWith('/')) return scheme === '' ? 'invalid URI for request' : undefined
  const isHierarchical = scheme !== '' && rest.startsWith('//')
  const [, authority = '', path = ''] = isHierarchical ? /^\/\/([^/]*)(.*)$/s.exec(rest)! : ['', '', rest]
  return authorityProblem(authority) ?? escapeProblem(path)
}

function authorityProblem(authority: string): string | undefined {
  const userinfoEnd = authority.lastIndexOf('@')
  if (userinfoEnd >= 0 && !/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(authority.slice(0, userinfoEnd)))
    return 'net/url: invalid userinfo'
  const host = authority.slice(userinfoEnd + 1)
  if (host.startsWith('[') && !host.includes(']')) return "missing ']' in host"
  const port = /:[^:\]]*$/.exec(host)?.[0] ?? ''
  if (!/^(:[0-9]*)?$/.test(port)) return `invalid port ${JSON.stringify(port)} after host`
  const invalidCharacter = /[ "<>\\^`{|}]/.exec(host)?.[0]
  return invalidCharacter === undefined
    ? escapeProblem(host)
    : `invalid character ${JSON.stringify(invalidCharacter)} in host name`
}

function escapeProblem(text: string): string | undefined {
  const invalidEscape = /%(?![0-9A-Fa-f]{2}).{0,2}/s.exec(text)?.[0]
  return invalidEscape === undefined ? undefined : `invalid URL escape ${JSON.stringify(invalidEscape)}`
}
