import type { TokenUser } from './token.ts'

/**
 * Reads a token file: lines of `token,user,uid` with an optional fourth column `"group1,group2"`. Skips empty lines, and lines that begin
 * with `#`. Upstream: k8s.io/apiserver/pkg/authentication/token/tokenfile, which only warns about empty and repeated tokens.
 *
 * @throws Error that names the line, never its content
 */
export function parseTokenFile(text: string): Map<string, TokenUser> {
  const users = new Map<string, TokenUser>()
  text.split(/\r?\n/).forEach((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return
    const reject = (reason: string) => new Error(`Cannot read token file: line ${index + 1} ${reason}`)
    const [token = '', name = '', uid, groups = ''] = columnsOf(line, reject)
    if (uid === undefined) throw reject('must have at least 3 columns (token, user name, user uid)')
    if (token === '') throw reject('has an empty token')
    if (users.has(token)) throw reject('has a token that appeared before')
    users.set(token, { name, groups: groups.split(',').filter(Boolean), ...(uid === '' ? {} : { uid }) })
  })
  return users
}

/** Splits a CSV line into its fields, without surrounding spaces. A quoted field may contain commas, and two quotes in it mean one. */
function columnsOf(line: string, reject: (reason: string) => Error): string[] {
  const columns: string[] = []
  let at = 0
  for (;;) {
    let column = ''
    if (line[at] === '"') {
      at++
      for (;;) {
        if (at >= line.length) throw reject('has a quote that is not closed')
        const isQuote = line[at] === '"'
        if (isQuote && line[at + 1] !== '"') break
        column += line[at]
        at += isQuote ? 2 : 1
      }
      at++
      if (at < line.length && line[at] !== ',') throw reject('has text after a closing quote')
    } else {
      while (at < line.length && line[at] !== ',') column += line[at++]
    }
    columns.push(column.trim())
    if (at >= line.length) return columns
    at++
  }
}
