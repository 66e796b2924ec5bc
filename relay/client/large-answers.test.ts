import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type AnswerBytes, LargeAnswers } from './large-answers.ts'

const forever = new AbortController().signal

/** Reads an answer, and reports how far it has come. */
function reading(answer: AnswerBytes, chunk: number) {
  const progress = { chunks: 0, isDone: false, error: undefined as unknown }
  const body = (async function* () {
    for (let i = 0; i < 3; i += 1) yield Buffer.alloc(chunk)
  })()
  const read = async () => {
    for await (const _chunk of answer.of(body)) progress.chunks += 1
    progress.isDone = true
  }
  read().catch((error: unknown) => (progress.error = error))
  return progress
}

test('a few large answers are read at a time, and small ones beside them', async () => {
  const answers = new LargeAnswers()
  const large = Array.from({ length: 5 }, () => {
    const answer = answers.open(forever)
    return { answer, progress: reading(answer, 600_000) }
  })
  const small = reading(answers.open(forever), 1000)
  await wait(10)
  expect(large.map(({ progress }) => progress.chunks)).toEqual([3, 3, 1, 1, 1])
  expect(small.isDone).toBe(true)
  large[0]?.answer[Symbol.dispose]()
  await wait(10)
  expect(large.map(({ progress }) => progress.chunks)).toEqual([3, 3, 3, 1, 1])
  for (const { answer } of large.slice(1, 3)) answer.clear()
  await wait(10)
  expect(large.every(({ progress }) => progress.isDone)).toBe(true)
})

test('an answer that waits ends with its call', async () => {
  const answers = new LargeAnswers()
  for (let i = 0; i < 2; i += 1) reading(answers.open(forever), 600_000)
  const abort = new AbortController()
  const waiting = reading(answers.open(abort.signal), 600_000)
  await wait(10)
  abort.abort(new Error('canceled'))
  await wait(10)
  expect(waiting).toMatchObject({ chunks: 1, error: { message: 'canceled' } })
})
