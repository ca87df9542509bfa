import { TerminalError } from '@capstan/kube'

/** What the same objects will always give: everything that could change it is watched, so nobody needs to try again. */
export function decided<T>(decide: () => T): T {
  try {
    return decide()
  } catch (err) {
    throw new TerminalError((err as Error).message, { cause: err })
  }
}
