/** A known difference of Capstan's output, which is masked so that the remaining output is compared. */
export interface Explanation {
  readonly reason: string
  /** Returns the output without the difference. */
  readonly mask: (output: string) => string
}

/** Returns a function that keeps only some lines of the output. */
const onlyLines = (keep: (line: string) => boolean) => (output: string) => output.split('\n').filter(keep).join('\n')

export const explained = {
  descriptions: {
    reason:
      "upstream's descriptions of built-in kinds are not copied: Capstan's output has fields and types, but no descriptions",
    mask: onlyLines((line) => /^(exit|KIND|VERSION|GROUP|FIELDS?|error)|^ *enum:|\t<[^>]+>/.test(line)),
  },
  serverObjects: {
    reason: 'Capstan has no Leases of API servers, and no objects for aggregated API servers and legacy tokens',
    // Also drops the table header: for an empty list, kubectl prints `No resources found` on stderr instead.
    mask: onlyLines(
      (line) =>
        !/^kube-system +(lease.*\/)?apiserver-|^(extension-apiserver-auth|kube-apiserver-legacy-)|^(NAME|No res|stderr)|^$/.test(
          line,
        ),
    ),
  },
  controllerAccounts: {
    reason:
      'kube-controller-manager creates ServiceAccounts for its controllers; the controllers of Capstan are part of the server',
    mask: onlyLines(
      (line) =>
        !/^kube-system +(clusterrole-aggregation-controller|generic-garbage-collector|namespace-controller|root-ca-cert-publisher|service-account-controller) /.test(
          line,
        ),
    ),
  },
  protobuf: {
    reason:
      'Capstan responds with JSON, which has empty lists; the real server responds with protobuf, in which an empty list is absent, so that kubectl prints null',
    mask: (output) => output.replaceAll(/"items": (null|\[\])/g, '"items"'),
  },
  goStructs: {
    reason: "Capstan's error shows the change of the spec as JSON, not as Go structs",
    mask: (output) => output.replace(/(may not change fields other than .*\n)[\s\S]*/, '$1'),
  },
  build: {
    reason: 'each server reports its own build',
    mask: onlyLines((line) => !/"(gitCommit|gitTreeState|buildDate|goVersion|compiler|platform)"/.test(line)),
  },
  unserved: {
    reason: 'Capstan does not serve MutatingAdmissionPolicy (docs/reference/gaps.md)',
    mask: onlyLines((line) => !/mutatingadmissionpolic/.test(line)),
  },
} as const satisfies { readonly [name: string]: Explanation }

/** Name of a known difference. */
export type Explained = keyof typeof explained
