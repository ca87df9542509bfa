import { describe, expect, it } from 'vitest'
import { UnstableMessages } from './unstable-messages.ts'

const record = (messages: UnstableMessages, texts: readonly string[], handler = 'gate.x', uid = '1') =>
  texts.map((message) => messages.record(handler, uid, message))

describe('a handler', () => {
  it('is reported once, at the fifth consecutive different message; this call and each further call with another message are counted', () => {
    const messages = new UnstableMessages()
    expect(record(messages, ['1', '2', '3', '4', '5', '6'])).toEqual([false, false, false, false, true, false])
    expect([...messages.counts]).toEqual([['gate.x', 2]])
  })

  it('that sometimes repeats a message is not reported', () => {
    const messages = new UnstableMessages()
    expect(record(messages, ['1', '2', '3', '3', '4', '5', '6', '6', '7'])).not.toContain(true)
  })

  it('may have a different message for each object', () => {
    const messages = new UnstableMessages()
    const unstable = ['a', 'b', 'c', 'd', 'e', 'f'].map((uid) => messages.record('gate.x', uid, `about ${uid}`))
    expect(unstable).not.toContain(true)
  })

  it('loses its count and its history with `forget`, and another handler keeps its history', () => {
    const messages = new UnstableMessages()
    record(messages, ['1', '2', '3', '4', '5'])
    record(messages, ['1', '2', '3', '4'], 'other.y')
    messages.forget((handler) => handler.endsWith('.x'))
    expect([...messages.counts]).toEqual([])
    expect(record(messages, ['6'])).toEqual([false])
    expect(record(messages, ['5'], 'other.y')).toEqual([true])
  })

  it('loses its least recently updated history when there are more than ten thousand histories', () => {
    const messages = new UnstableMessages()
    record(messages, ['1', '2', '3', '4'], 'gate.x', 'first')
    for (let i = 0; i < 10_000; i++) messages.record('gate.x', `${i}`, '')
    expect(record(messages, ['5'], 'gate.x', 'first')).toEqual([false])
  })
})
