/** Messages between `capstan dev` and the process that runs an extension. Plain JSON. */

/** Handler of the extension, with the data that discovery returns. */
export interface AnnouncedHandler {
  readonly hook: string
  readonly apiVersion: string
  readonly name: string
  /** Timeout of a call; 10 when absent or 0. */
  readonly timeoutSeconds?: number
  /** `Fail` when absent. */
  readonly failurePolicy?: string
}

export type ToChild =
  /** Sent once: loads the module `file`. */
  | { readonly kind: 'load'; readonly file: string }
  | {
      readonly kind: 'call'
      readonly id: number
      readonly method: string
      readonly url: string
      readonly headers: readonly (readonly [string, string])[]
      readonly body: string
    }
  /** The caller no longer waits for the response. */
  | { readonly kind: 'abort'; readonly id: number }

export type FromChild =
  /**
   * Response to `load` for a loaded extension. The parent watches `files`: the files of the extension's modules, and missing files that
   * a relative import names.
   */
  | {
      readonly kind: 'loaded'
      readonly name: string
      readonly handlers: readonly AnnouncedHandler[]
      readonly files: readonly string[]
    }
  /** Response to `load` if the module cannot be loaded or exports no extension. `files` as for `loaded`. */
  | { readonly kind: 'notLoaded'; readonly problem: string; readonly files: readonly string[] }
  /** Response to `call`. */
  | {
      readonly kind: 'answered'
      readonly id: number
      readonly status: number
      readonly headers: readonly (readonly [string, string])[]
      readonly body: string
    }
  | {
      readonly kind: 'log'
      readonly level: string
      readonly message: string
      readonly fields: { readonly [name: string]: unknown }
    }
