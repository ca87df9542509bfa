/** Parses the part of etcd's command line that test environments use. Upstream: Go's package flag, etcd v3.6. */

export interface EtcdOptions {
  readonly dataDir: string
  /** URLs to listen on for clients. */
  readonly clientURLs: readonly URL[]
  /** Whether writes may be lost in a crash of the machine. */
  readonly isUnsafe: boolean
}

export type EtcdCommand =
  | { readonly kind: 'serve'; readonly options: EtcdOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'rejected'; readonly reason: string }

/** Flags with an effect: type, default and help text. */
const flags = {
  name: { type: 'text', initial: 'default', help: 'Human-readable name for this member.' },
  'data-dir': { type: 'text', initial: '${name}.etcd', help: 'Path to the data directory.' },
  'listen-client-urls': {
    type: 'text',
    initial: 'http://localhost:2379',
    help: 'List of URLs to listen on for client traffic.',
  },
  'unsafe-no-fsync': { type: 'bool', initial: 'false', help: 'Disables fsync, unsafe, will cause data loss.' },
} as const

/** Flags without effect: there are no peers, no metrics and no log settings, and the API server stores the state and its history. */
const withoutEffect: readonly string[] = [
  'advertise-client-urls',
  'listen-peer-urls',
  'initial-advertise-peer-urls',
  'listen-metrics-urls',
  'wal-dir',
  'initial-cluster',
  'initial-cluster-state',
  'initial-cluster-token',
  'snapshot-count',
  'heartbeat-interval',
  'election-timeout',
  'max-snapshots',
  'max-wals',
  'quota-backend-bytes',
  'max-txn-ops',
  'max-request-bytes',
  'auto-compaction-mode',
  'auto-compaction-retention',
  'backend-batch-interval',
  'backend-batch-limit',
  'logger',
  'log-level',
  'log-outputs',
  'log-format',
  'metrics',
]
const switchesWithoutEffect: readonly string[] = ['force-new-cluster', 'pre-vote', 'strict-reconfig-check', 'enable-pprof']

/**
 * Parses the arguments of an `etcd` command. The result is `rejected` for an unknown flag, a missing or invalid value, or an argument that is
 * not a flag.
 */
export function etcdCommand(argv: readonly string[]): EtcdCommand {
  const values: { [flag: string]: string } = {}
  for (let i = 0; i < argv.length; i++) {
    const [, flag, value] = /^--?([^-=][^=]*)(?:=([^]*))?$/.exec(argv[i]!) ?? []
    if (flag === undefined) return { kind: 'rejected', reason: `${JSON.stringify(argv[i])} is not a valid flag` }
    if (flag === 'help' || flag === 'h') return { kind: 'help' }
    if (flag === 'version') return { kind: 'version' }
    if (isSwitch(flag)) {
      const text = value ?? 'true'
      if (!['true', 'false', '1', '0', 't', 'f', 'T', 'F', 'TRUE', 'FALSE', 'True', 'False'].includes(text))
        return { kind: 'rejected', reason: `invalid boolean value ${JSON.stringify(text)} for -${flag}: parse error` }
      values[flag] = text
    } else if (flag in flags || withoutEffect.includes(flag)) {
      const text = value ?? argv[++i]
      if (text === undefined) return { kind: 'rejected', reason: `flag needs an argument: -${flag}` }
      values[flag] = text
    } else return { kind: 'rejected', reason: `flag provided but not defined: -${flag}` }
  }

  const { name = flags.name.initial } = values
  const clientURLs = (values['listen-client-urls'] ?? flags['listen-client-urls'].initial)
    .split(',')
    .map((text) => URL.parse(text))
  if (!clientURLs.every((url) => url?.protocol === 'http:'))
    return {
      kind: 'rejected',
      reason: `invalid value ${JSON.stringify(values['listen-client-urls'])} for flag -listen-client-urls: expected http://HOST:PORT`,
    }
  return {
    kind: 'serve',
    options: {
      dataDir: values['data-dir'] ?? `${name}.etcd`,
      clientURLs: clientURLs as URL[],
      isUnsafe: /^(t|1)/i.test(values['unsafe-no-fsync'] ?? ''),
    },
  }
}

const isSwitch = (flag: string): boolean =>
  switchesWithoutEffect.includes(flag) || (flags as { [flag: string]: { type: string } })[flag]?.type === 'bool'

/** Help text with one flag per line. Test environments read the supported flags from it. */
export const etcdHelp = `Usage:

  etcd [flags]
    Serve the path of the folder in which one Capstan API server stores its state. The API server requests the path from
    the URL in --etcd-servers.
    Of etcd's protocol, only /health and /version are served.

Flags:
${Object.entries(flags)
  .map(([flag, { initial, help }]) => `  --${flag} '${initial}'\n    ${help}`)
  .join('\n')}

Accepted, and without effect:
${[...withoutEffect, ...switchesWithoutEffect].map((flag) => `  --${flag}`).join('\n')}`
