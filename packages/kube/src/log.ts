/**
 * Structured logs for operators. Write facts into fields, so that messages are constant. Pass a logger as an argument. Bind fields such as
 * controller, object or cluster to a child logger.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields & { err?: unknown }): void
  child(fields: LogFields): Logger
}

export type LogFields = { readonly [name: string]: unknown }

/** Returns `namespace/name` of an object, or `name` without a namespace, to identify the object in logs. */
export const ref = ({ metadata }: { metadata: { name: string; namespace?: string } }): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name

/** A logger that discards all messages. */
export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
