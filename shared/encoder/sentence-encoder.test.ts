import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { encoderRuns } from '@parley/tools/testing/encoder-runs'
import { expect, test } from 'vitest'
import { dimensions, SentenceEncoder } from './sentence-encoder.ts'

const model = new URL('./model/', import.meta.url)

const cosine = (a: Float32Array, b: Float32Array) =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

async function vectorsOf(encoder: SentenceEncoder, texts: string[]): Promise<Float32Array[]> {
  const found = await encoder.embed(texts)
  if ('failed' in found) throw new Error(found.failed)
  return found.vectors
}

test.skipIf(!encoderRuns()).for([
  [
    'Sum up the minutes of the meeting',
    'key points: Lists what was decided in a meeting',
    'convert units: Miles to kilometres',
  ],
  [
    'How far is twenty miles in metric?',
    'convert units: Miles to kilometres',
    'key points: Lists what was decided in a meeting',
  ],
  [
    'Which flights go to Rome on Friday?',
    'find flights: Compares connections and fares',
    'book hotel: Rooms by price and place',
  ],
] as const)(
  '(needs onnxruntime-node) %j is nearer to the skill %j than to %j',
  async ([request, right, wrong]) => {
    await using encoder = new SentenceEncoder()
    const [asked, near, far] = (await vectorsOf(encoder, [request, right, wrong])) as [
      Float32Array,
      Float32Array,
      Float32Array,
    ]
    expect(cosine(asked, near)).toBeGreaterThan(cosine(asked, far))
  },
)

test.skipIf(!encoderRuns())(
  '(needs onnxruntime-node) any text has a vector of length 1, and the same text the same vector',
  async () => {
    await using encoder = new SentenceEncoder()
    const texts = [
      '',
      ' ',
      '😀😀',
      '\uD800',
      '\0',
      'a'.repeat(1_000_000),
      '请总结 この مقال',
      '[SEP]',
      'x\n'.repeat(5000),
      'hello',
      'hello',
    ]
    const vectors = await vectorsOf(encoder, texts)
    for (const vector of vectors) {
      expect(vector).toHaveLength(dimensions)
      expect(cosine(vector, vector)).toBeCloseTo(1, 4)
    }
    expect(vectors.at(-1)).toEqual(vectors.at(-2))
  },
)

test.skipIf(!encoderRuns())(
  '(needs onnxruntime-node) a vector does not depend much on the other texts of its batch',
  async () => {
    await using encoder = new SentenceEncoder({ keptMax: 1 })
    const [alone] = (await vectorsOf(encoder, ['draw a chart'])) as [Float32Array]
    const [among] = (await vectorsOf(encoder, [
      'draw a chart',
      'a much longer text about something else '.repeat(5),
    ])) as [Float32Array]
    expect(cosine(alone, among)).toBeGreaterThan(0.98)
  },
)

test.skipIf(!encoderRuns())(
  '(needs onnxruntime-node) a text that a request waits for overtakes skills',
  async () => {
    await using encoder = new SentenceEncoder()
    const order: string[] = []
    const skills = Array.from({ length: 64 }, (_, at) => `skill number ${at}`)
    const later = Promise.all(skills.map((skill) => encoder.embed([skill], false))).then(() =>
      order.push('skills'),
    )
    await encoder.embed(['a request']).then(() => order.push('request'))
    await later
    expect(order).toEqual(['request', 'skills'])
  },
)

/** Runs with a copy of the model in which a file was changed. */
const withFolder = (change: (folder: string) => Promise<void>) =>
  inCopy(change, async (encoder) => {
    await encoder.embed(['hello'])
    return encoder.embed(['hello again'])
  })

async function inCopy<T>(
  change: (folder: string) => Promise<void>,
  run: (encoder: SentenceEncoder) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-encoder-'))
  try {
    for (const name of ['encoder.onnx', 'vocabulary.txt', 'SHA256SUMS'])
      await copyFile(new URL(name, model), path.join(folder, name))
    await change(folder)
    await using encoder = new SentenceEncoder({ folder: pathToFileURL(`${folder}/`) })
    return await run(encoder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('a damaged file gives a reason instead of vectors', async () => {
  expect(await withFolder((folder) => writeFile(path.join(folder, 'encoder.onnx'), 'damaged'))).toEqual({
    failed: 'the file encoder.onnx of the encoder is damaged; install Parley again',
  })
})

test('a missing file gives a reason instead of vectors', async () => {
  expect(await withFolder((folder) => rm(path.join(folder, 'vocabulary.txt')))).toEqual({
    failed: 'a file of the encoder is missing; install Parley again',
  })
})

test('a model is identified by the checksums of its files', async () => {
  const replaced = (from: string, to: string) => async (folder: string) => {
    const file = path.join(folder, 'SHA256SUMS')
    await writeFile(file, (await readFile(file, 'utf8')).replace(from, to))
  }
  const modelAfter = (change: (folder: string) => Promise<void>) =>
    inCopy(change, (encoder) => encoder.model())
  const sum = (await readFile(new URL('SHA256SUMS', model), 'utf8')).slice(0, 64)
  const own = await modelAfter(async () => {})
  expect(own).toContain(sum)
  expect(await modelAfter(replaced(sum, '0'.repeat(64)))).not.toBe(own)
  expect(await modelAfter(replaced('encoder.onnx', 'other.onnx'))).toBeUndefined()
  expect(await modelAfter((folder) => rm(path.join(folder, 'SHA256SUMS')))).toBeUndefined()
})

test('texts that wait when the encoder ends get a reason', async () => {
  const encoder = new SentenceEncoder()
  const waiting = [encoder.embed(['one']), encoder.embed(['two'], false)]
  await encoder[Symbol.asyncDispose]()
  expect(await Promise.all(waiting)).toEqual([
    { failed: 'the encoder has ended' },
    { failed: 'the encoder has ended' },
  ])
  expect(await encoder.embed(['three'])).toEqual({ failed: 'the encoder has ended' })
})

// A thread that is terminated while it loads or runs the model aborts the process.
test.skipIf(!encoderRuns()).each([0, 100, 150, 200, 250, 300, 400])(
  'a process that closes the encoder after %i ms of work ends normally',
  async (afterMs) => {
    const script = `
      const { SentenceEncoder } = await import(${JSON.stringify(new URL('./sentence-encoder.ts', import.meta.url).href)})
      const encoder = new SentenceEncoder()
      for (let at = 0; at < 60; at += 1) void encoder.embed(['text ' + at, 'another text, number ' + at], false)
      await new Promise((resolve) => setTimeout(resolve, ${afterMs}))
      await encoder[Symbol.asyncDispose]()`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
    expect(await once(child, 'close')).toEqual([0, null])
  },
)

test.skipIf(!encoderRuns())(
  'a request behind a hundred others gets no vectors, because the encoder is busy',
  async () => {
    await using encoder = new SentenceEncoder()
    const found = await Promise.all(
      Array.from({ length: 150 }, (_, at) => encoder.embed([`text number ${at}`])),
    )
    const failed = found.flatMap((one) => ('failed' in one ? one.failed : []))
    expect(failed.length).toBeGreaterThanOrEqual(49)
    expect(new Set(failed)).toEqual(new Set(['the encoder is busy']))
    expect(await encoder.embed(['one more'])).toHaveProperty('vectors')
  },
)
