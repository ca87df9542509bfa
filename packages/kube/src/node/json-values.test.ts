import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readJSONObjects } from './json-values.ts'

async function split(chunks: readonly Buffer[], maxBytes = 1000): Promise<string[]> {
  const texts: string[] = []
  async function* stream() {
    yield* chunks
  }
  for await (const objects of readJSONObjects(stream(), maxBytes)) texts.push(...objects.map(String))
  return texts
}

const cut = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

test.each([
  ['one object on each line', '{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']],
  ['objects without white space between them', '{"a":{}}{"b":[{}]}', ['{"a":{}}', '{"b":[{}]}']],
  ['pretty-printed objects', '{\n  "a": {\n  }\n}\r\n\t{\n}', ['{\n  "a": {\n  }\n}', '{\n}']],
  ['braces and quotes inside strings', '{"a}{":"\\"}\\\\"}{"b":"{"}', ['{"a}{":"\\"}\\\\"}', '{"b":"{"}']],
  ['a stream that ends within an object, which is dropped', '{"a":1}{"b":', ['{"a":1}']],
  ['a stream of white space only', ' \n', []],
])('splits %s', async (_, text, objects) => {
  for (const size of [1, 2, 7, 100]) expect(await split(cut(Buffer.from(text), size))).toEqual(objects)
})

test('splits objects independently of the boundaries of chunks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), fc.constantFrom('', '\n', ' \r\n'), fc.boolean()),
      ),
      fc.integer({ min: 1, max: 50 }),
      async (parts, size) => {
        const texts = parts.map(([value, , pretty]) => JSON.stringify(value, undefined, pretty ? 2 : 0))
        const bytes = Buffer.from(parts.map(([, space], i) => texts[i]! + space).join(''))
        expect(await split(cut(bytes, size), 1 << 20)).toEqual(texts)
      },
    ),
    { seed: 14, numRuns: 300 },
  )
})

test.each([
  ['a list', '{"a":1}[]', SyntaxError, 'expected a JSON object, got "[]"'],
  ['plain text', 'internal error', SyntaxError, 'expected a JSON object, got "internal error"'],
  ['an object that is too long', `{"a":"${'x'.repeat(1000)}"}`, RangeError, 'a JSON object is longer than 1000 bytes'],
  [
    'an object that is too long and does not end',
    `{"a":"${'x'.repeat(1000)}`,
    RangeError,
    'a JSON object is longer than 1000 bytes',
  ],
])('rejects %s', async (_, text, type, message) => {
  for (const size of [10, 10_000]) {
    const failure = split(cut(Buffer.from(text), size))
    await expect(failure).rejects.toThrow(type)
    // With chunks of 10 bytes, the error text may contain only a part of the value.
    if (size > 10) await expect(split(cut(Buffer.from(text), size))).rejects.toThrow(message)
  }
})
