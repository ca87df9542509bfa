/** Words that CEL reserves for future use. Upstream: cel-spec, doc/langdef.md. */
const Reserved = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)
const LiteralsAndOperators = new Set(['true', 'false', 'null', 'in'])

export const isReserved = (word: string): boolean => Reserved.has(word)

/** Reports whether a word has the form of an identifier but cannot be used as one. */
export const isKeyword = (word: string): boolean => Reserved.has(word) || LiteralsAndOperators.has(word)

/** Reports whether a variable of an expression can have this name. */
export const isIdentifier = (name: string): boolean => /^[_a-zA-Z]\w*$/.test(name) && !isKeyword(name)
