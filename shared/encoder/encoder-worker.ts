/** The thread of the encoder. It checks the files, loads the model once and embeds one batch at a time. */
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { WordPiece } from './word-piece.ts'

export interface EncoderOrder {
  id: number
  texts: string[]
}

/** The vectors of the texts one after the other, each with `dimensions` numbers, or why there are none; final if the model cannot be loaded. */
export type EncoderAnswer =
  | { id: number; vectors: Float32Array }
  | { id: number; failed: string; isFinal: boolean }

/** Longer texts are cut. The model was trained with at most 64 pieces. */
const piecesMax = 128
const paddedTimesMax = 1.25
const folder = new URL((workerData as { folder: string }).folder)

class Refused extends Error {}

const read = (name: string) => readFileSync(new URL(name, folder))

/** Reads the file in pieces, so that the model is not in memory twice. @throws Refused if it is damaged */
async function check(name: string, sums: ReadonlyMap<string, string>): Promise<void> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(new URL(name, folder)), hash)
  if (hash.digest('hex') !== sums.get(name))
    throw new Refused(`the file ${name} of the encoder is damaged; install Parley again`)
}

async function load() {
  const lines = read('SHA256SUMS').toString('utf8').trim().split('\n')
  const sums = new Map(lines.map((line) => line.split(/\s+/u).reverse() as [string, string]))
  for (const name of ['vocabulary.txt', 'encoder.onnx']) await check(name, sums)
  const words = new WordPiece(read('vocabulary.txt').toString('utf8').trimEnd().split('\n'))
  const { InferenceSession, Tensor } = await import('onnxruntime-node')
  const session = await InferenceSession.create(fileURLToPath(new URL('encoder.onnx', folder)), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    // The fusions of higher levels give nearly the same vectors, but take a quarter more time with weights of 8 bits.
    graphOptimizationLevel: 'basic',
    // Inputs differ in length, so that memory plans and arenas would grow with each new length.
    enableCpuMemArena: false,
    enableMemPattern: false,
  })
  const run = async (rows: readonly number[][]): Promise<Float32Array> => {
    const longest = Math.max(...rows.map(({ length }) => length))
    const ids = new BigInt64Array(rows.length * longest)
    const mask = new BigInt64Array(rows.length * longest)
    rows.forEach((row, at) =>
      row.forEach((id, place) => {
        ids[at * longest + place] = BigInt(id)
        mask[at * longest + place] = 1n
      }),
    )
    const shape = [rows.length, longest]
    const { vectors } = await session.run({
      input_ids: new Tensor('int64', ids, shape),
      attention_mask: new Tensor('int64', mask, shape),
    })
    return vectors?.data as Float32Array
  }
  const embed = async (texts: readonly string[]): Promise<Float32Array[]> => {
    const rows = texts.map((text) => words.idsOf(text, piecesMax))
    const lengths = rows.map(({ length }) => length)
    const padded = Math.max(...lengths) * rows.length
    // Shorter texts of a batch are padded to the longest one, which costs as much as if they were as long.
    const isEven = padded <= paddedTimesMax * lengths.reduce((sum, length) => sum + length, 0)
    if (isEven) return [await run(rows)]
    const vectors: Float32Array[] = []
    for (const row of rows) vectors.push(await run([row]))
    return vectors
  }
  return { embed, release: () => session.release() }
}

function reasonOf(error: unknown): string {
  if (error instanceof Refused) return error.message
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND')
    return 'the optional package onnxruntime-node is not installed'
  if (code === 'ENOENT') return 'a file of the encoder is missing; install Parley again'
  return 'the encoder could not be loaded'
}

let loaded: ReturnType<typeof load> | undefined
let isLoaded = false

async function answer({ id, texts }: EncoderOrder): Promise<void> {
  try {
    loaded ??= load()
    const { embed } = await loaded
    isLoaded = true
    const found = await embed(texts)
    const vectors = new Float32Array(found.reduce((sum, { length }) => sum + length, 0))
    let from = 0
    for (const part of found) {
      vectors.set(part, from)
      from += part.length
    }
    parentPort?.postMessage({ id, vectors } satisfies EncoderAnswer, [vectors.buffer])
  } catch (error) {
    parentPort?.postMessage({
      id,
      failed: isLoaded ? 'the encoder failed' : reasonOf(error),
      isFinal: !isLoaded,
    } satisfies EncoderAnswer)
  }
}

/** Ends the thread. A thread that is terminated while the model runs would abort the process. */
async function close(): Promise<void> {
  const model = await loaded?.catch(() => undefined)
  await model?.release()
  parentPort?.close()
}

/** The last job, after which the next one begins. */
let last = Promise.resolve()

parentPort?.on('message', (order: EncoderOrder | 'close') => {
  last = last.then(() => (order === 'close' ? close() : answer(order)))
})
