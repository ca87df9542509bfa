/** Known differences with reasons. `mask` removes a difference from the output, so that the remaining output is compared. */
export interface Explanation {
  readonly reason: string
  /** Returns the output without the difference. */
  readonly mask: (output: string) => string
}

const lines = (keep: (line: string) => boolean) => (output: string) => output.split('\n').filter(keep).join('\n')

export const explained = {
  descriptions: {
    reason: "upstream's descriptions of built-in kinds are not copied: the output has fields and types, but no descriptions",
    mask: lines((line) => /^(exit|KIND|VERSION|GROUP|FIELDS?|error)|^ *enum:|\t<[^>]+>/.test(line)),
  },
  alone: {
    reason: 'Leases of API servers, and objects for aggregated API servers and legacy tokens, do not exist',
    mask: lines(
      (line) =>
        !/^kube-system +(lease.*\/)?apiserver-|^(extension-apiserver-auth|kube-apiserver-legacy-)|^(NAME|No res|stderr)|^$/.test(
          line,
        ),
    ),
  },
  controllers: {
    reason:
      'kube-controller-manager creates ServiceAccounts for its controllers; the controllers of the embedded server are part of it',
    mask: lines(
      (line) =>
        !/^kube-system +(clusterrole-aggregation-controller|generic-garbage-collector|namespace-controller|root-ca-cert-publisher|service-account-controller) /.test(
          line,
        ),
    ),
  },
  protobuf: {
    reason: 'responses are JSON, which has empty lists; in protobuf an empty list is absent, and kubectl prints null',
    mask: (output) => output.replaceAll(/"items": (null|\[\])/g, '"items"'),
  },
  structs: {
    reason: 'the error shows the difference of specifications as JSON, not as Go structs',
    mask: (output) => output.replace(/(may not change fields other than .*\n)[\s\S]*/, '$1'),
  },
  build: {
    reason: 'each server reports its own build',
    mask: lines((line) => !/"(gitCommit|gitTreeState|buildDate|goVersion|compiler|platform)"/.test(line)),
  },
  unserved: {
    reason: 'not served: MutatingAdmissionPolicy (docs/reference/gaps.md)',
    mask: lines((line) => !/mutatingadmissionpolic/.test(line)),
  },
} as const satisfies { readonly [name: string]: Explanation }

export type Explained = keyof typeof explained
