/** Differences that are known and have a reason. Each says how to look past it, so that all the rest is compared all the same. */
export interface Explanation {
  readonly reason: string
  /** What is left of an output when the difference is taken out. */
  readonly mask: (output: string) => string
}

const lines = (keep: (line: string) => boolean) => (output: string) => output.split('\n').filter(keep).join('\n')

export const explained = {
  descriptions: {
    reason: "upstream's sentences about built-in kinds are not copied: fields and their types are there, descriptions are not",
    mask: lines((line) => /^(KIND|VERSION|GROUP|FIELDS?|ENUM|error):?|\t<[^>]+>|^ +<\w+>$/.test(line)),
  },
} as const satisfies { readonly [name: string]: Explanation }

export type Explained = keyof typeof explained
