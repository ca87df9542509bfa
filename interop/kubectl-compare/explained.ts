/** Known differences with their reasons. Each removes its difference from the output, so that the rest is compared. */
export interface Explanation {
  readonly reason: string
  /** Returns the output without the difference. */
  readonly mask: (output: string) => string
}

const lines = (keep: (line: string) => boolean) => (output: string) => output.split('\n').filter(keep).join('\n')

export const explained = {
  descriptions: {
    reason: "upstream's sentences about built-in kinds are not copied: fields and their types are there, descriptions are not",
    mask: lines((line) => /^(exit|KIND|VERSION|GROUP|FIELDS?|error)|^ *enum:|\t<[^>]+>/.test(line)),
  },
  alone: {
    reason: 'what API servers keep for one another, for aggregated ones and for tokens of old is not there',
    mask: lines(
      (line) =>
        !/^kube-system +(lease.*\/)?apiserver-|^(extension-apiserver-auth|kube-apiserver-legacy-)|^(NAME|No res|stderr)|^$/.test(
          line,
        ),
    ),
  },
  controllers: {
    reason: "kube-controller-manager makes ServiceAccounts for its controllers; the embedded server's are part of the server",
    mask: lines(
      (line) =>
        !/^kube-system +(clusterrole-aggregation-controller|generic-garbage-collector|namespace-controller|root-ca-cert-publisher|service-account-controller) /.test(
          line,
        ),
    ),
  },
  protobuf: {
    reason: 'answers are JSON, where an empty list is a list; in protobuf it is nothing',
    mask: (output) => output.replaceAll(/"items": (null|\[\])/g, '"items"'),
  },
  structs: {
    reason: 'what is compared is a specification as JSON has it, and not a Go struct',
    mask: (output) => output.replace(/(may not change fields other than .*\n)[\s\S]*/, '$1'),
  },
  build: {
    reason: 'what the server is built of, and when, is its own',
    mask: lines((line) => !/"(gitCommit|gitTreeState|buildDate|goVersion|compiler|platform)"/.test(line)),
  },
  unserved: {
    reason: 'not served: MutatingAdmissionPolicy (docs/reference/gaps.md)',
    mask: lines((line) => !/mutatingadmissionpolic/.test(line)),
  },
} as const satisfies { readonly [name: string]: Explanation }

export type Explained = keyof typeof explained
