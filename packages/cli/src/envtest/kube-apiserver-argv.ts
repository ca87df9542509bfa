/** Translates a command line of kube-apiserver to one of `capstan apiserver`. */

/**
 * Flags whose repeated values are joined with commas, because upstream they have a list or map type. Differs from upstream for
 * service-cluster-ip-range, which is a string there, so that only its last value counts.
 */
const listFlags = new Set([
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

/** Replaces underscores in flag names with dashes, and joins repeated list flags. Upstream: pflag, component-base/cli/flag. */
export function translateArgv(argv: readonly string[]): string[] {
  const translated: string[] = []
  const positions = new Map<string, number>()
  for (let i = 0; i < argv.length; i++) {
    const [, name, inlineValue] = /^--([^=]+)(?:=([^]*))?$/.exec(argv[i]!) ?? []
    const flag = name?.replaceAll('_', '-')
    if (flag === undefined) translated.push(argv[i]!)
    else if (!listFlags.has(flag)) translated.push(inlineValue === undefined ? `--${flag}` : `--${flag}=${inlineValue}`)
    else {
      const value = inlineValue ?? argv[++i] ?? ''
      const index = positions.get(flag)
      if (index === undefined) positions.set(flag, translated.push(`--${flag}=${value}`) - 1)
      else translated[index] += `,${value}`
    }
  }
  return translated
}

/** Returns kube-apiserver's error texts for missing required flags. */
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
