/**
 * Structured logs for the people who run the system. The message is a constant; facts follow as fields. There is no logger of
 * the module: it is an argument, and what is bound once (controller, object, cluster) comes along in a child.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields & { err?: unknown }): void
  child(fields: LogFields): Logger
}

export type LogFields = { readonly [name: string]: unknown }

/** An object as logs show it: never its content. */
export const ref = ({ metadata }: { metadata: { name: string; namespace?: string } }): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
