import { messageOf, TerminalError } from '@capstan/kube'

/** What the same objects will always give: everything that could change it is watched, so nobody needs to try again. */
export function decided<T>(decide: () => T): T {
  try {
    return decide()
  } catch (err) {
    throw new TerminalError((err as Error).message, { cause: err })
  }
}

/** What goes wrong inside is told with the step that it belongs to before it, as upstream tells it. What was decided stays so. */
export async function within<T>(step: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (err) {
    const Wrapped = err instanceof TerminalError ? TerminalError : Error
    throw new Wrapped(`${step}: ${messageOf(err)}`, { cause: err })
  }
}
