import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const module = new URL('small-heap.ts', import.meta.url).href

/** Program that creates garbage, and prints a line when the heap has become smaller without further allocations. */
const script = `
  import { getHeapStatistics } from 'node:v8'
  const { keepHeapSmall } = await import(${JSON.stringify(module)})
  keepHeapSmall()
  const total = () => getHeapStatistics().total_heap_size / 2 ** 20
  const before = total()
  let held = []
  for (let index = 0; index < 400_000; index++) held.push({ text: 'object ' + index })
  const grown = total()
  // The objects stay referenced for 500 ms, so that collections that V8 has already started do not free them.
  setTimeout(() => (held = undefined), 500)
  const watching = setInterval(() => {
    if (total() > before + 4) return
    clearInterval(watching)
    console.log(JSON.stringify({ grown: grown - before > 12 }))
  }, 20)
`

test('an idle process returns unused memory', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 20_000,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  expect({ stdout, stderr }).toEqual({ stdout: '{"grown":true}\n', stderr: '' })
})
