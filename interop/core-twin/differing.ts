/**
 * Cases whose objects or responses differ from upstream's in a way that is neither fixed nor explained, with reasons. These cases
 * run, and their differences are printed and counted, but do not fail the suite.
 */
export const differing: { readonly [name: string]: string } = {}
