/** An authenticated user. Upstream: k8s.io/apiserver/pkg/authentication/user, Info. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  /** Further attributes from authentication, such as `authentication.kubernetes.io/credential-id`. */
  readonly extra?: { readonly [key: string]: readonly string[] }
}

/** Sender of a request. Set by authentication in the HTTP layer; in-process callers specify it themselves. */
export interface Caller extends User {
  /** User-Agent up to the first '/': the default field manager of writes. */
  readonly agent: string
}
