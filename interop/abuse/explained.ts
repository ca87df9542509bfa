/** Intended differences between the HTTP statuses of Capstan's server and the real server, with reasons. */
import type { HostileInput } from './inputs.ts'

const reasons: readonly { readonly why: string; is(input: HostileInput, ours: number, real: number): boolean }[] = [
  {
    why: 'Numbers beyond the range of a double are rejected in every field; upstream ignores the values of unknown fields.',
    is: ({ name }, ours, real) => /digits/.test(name) && ours === 400 && real === 422,
  },
  {
    why: 'JSON and YAML may be 1,000 levels deep, see docs/reference/limits.md; upstream allows 10,000 levels.',
    is: ({ name }, ours, real) => name.includes('nested objects') && ours === 400 && real === 422,
  },
  {
    why: 'A body may have 250,000 objects and lists, see docs/reference/limits.md; upstream does not limit their number.',
    is: ({ name }, ours, real) => name.includes('the most empty') && ours === 413 && real === 422,
  },
  {
    why: 'A YAML document may use an anchor 1,000 times, see docs/reference/limits.md.',
    is: ({ name }, ours, real) => name.includes('aliases') && ours === 400 && real === 422,
  },
  {
    why: 'Reading YAML is limited to 10 seconds and 512 MB, see docs/reference/limits.md; 3 MB of key-value pairs need more.',
    is: ({ name }, ours, real) => name.includes('equal keys as application/yaml') && ours === 400 && real === 422,
  },
  {
    why: 'The real server does not finish the request in time. It responds with 504, or ends the connection if it has begun to respond.',
    is: (_, ours, real) => ours > 0 && ours < 500 && (real === 504 || real === 0),
  },
]

/** Whether one of the reasons applies to an input with these HTTP statuses of Capstan's server and the real server. */
export const explained = (input: HostileInput, ours: number, real: number): boolean =>
  reasons.some(({ is }) => is(input, ours, real))
