/** Words that the language keeps for itself, although they mean nothing yet. Upstream: cel-spec, doc/langdef.md. */
const Reserved = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)
const Meaningful = new Set(['true', 'false', 'null', 'in'])

export const isReserved = (word: string): boolean => Reserved.has(word)

/** What looks like an identifier, and is none. */
export const isKeyword = (word: string): boolean => Reserved.has(word) || Meaningful.has(word)

/** Whether expressions can have a variable of that name. */
export const isIdentifier = (name: string): boolean => /^[_a-zA-Z]\w*$/.test(name) && !isKeyword(name)
