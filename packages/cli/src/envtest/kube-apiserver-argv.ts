/** Translates a command line of kube-apiserver to one of `capstan apiserver`. */

/** Upstream: flags of type StringSlice; repeated flags are appended. */
const lists = new Set([
  'admission-control',
  'api-audiences',
  'authorization-mode',
  'disable-admission-plugins',
  'enable-admission-plugins',
  'etcd-servers',
  'feature-gates',
  'runtime-config',
  'service-cluster-ip-range',
  'tls-cipher-suites',
])

/** Replaces underscores in flag names by dashes, and joins repeated list flags. Upstream: pflag, component-base/cli/flag. */
export function upstreamArgv(argv: readonly string[]): string[] {
  const out: string[] = []
  const pieces = new Map<string, number>()
  for (let i = 0; i < argv.length; i++) {
    const [, name, joined] = /^--([^=]+)(?:=([^]*))?$/.exec(argv[i]!) ?? []
    const flag = name?.replaceAll('_', '-')
    if (flag === undefined) out.push(argv[i]!)
    else if (!lists.has(flag)) out.push(joined === undefined ? `--${flag}` : `--${flag}=${joined}`)
    else {
      const value = joined ?? argv[++i] ?? ''
      const index = pieces.get(flag)
      if (index === undefined) pieces.set(flag, out.push(`--${flag}=${value}`) - 1)
      else out[index] += `,${value}`
    }
  }
  return out
}

/** Errors for required flags that are missing, with kube-apiserver's texts. */
export function missingFlags(argv: readonly string[]): string[] {
  const has = (flag: string) => argv.some((arg) => arg === `--${flag}` || arg.startsWith(`--${flag}=`))
  return [
    ...(has('etcd-servers') ? [] : ['--etcd-servers must be specified']),
    ...(has('service-account-issuer') ? [] : ['service-account-issuer is a required flag']),
    ...(has('service-account-key-file')
      ? []
      : ['either `--service-account-key-file` or `--service-account-signing-endpoint` must be set']),
    ...(has('service-account-issuer') && has('service-account-signing-key-file')
      ? []
      : ['--service-account-signing-key-file and --service-account-issuer are required flags']),
  ]
}
