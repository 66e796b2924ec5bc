import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as after } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { RecentMap } from '@parley/kit/did/recent-map'
import type { EncoderAnswer, EncoderOrder } from './encoder-worker.ts'

/** Numbers of a vector. */
export const dimensions = 384

export interface SentenceEncoderOptions {
  /** Maximum number of kept vectors, 1.5 kB each. Default 4,000. */
  keptMax?: number
  /** The folder with the model, its vocabulary and their checksums. Default: the model of this package. */
  folder?: URL
}

export type Encoded = { vectors: Float32Array[] } | { failed: string }

/** Maximum number of texts of a batch. A batch of 8 takes about ten milliseconds, for which a request may have to wait. */
const batchMax = 8
const charsMax = 2000
/** A request that would wait longer, or behind more others, is ranked by words only. */
const soonMaxMs = 3000
const soonMax = 100
const busy = 'the encoder is busy'
/** A batch, or loading the model, takes less, also on a busy machine. */
const endMaxMs = 20_000
/** To be raised when the code changes so that the same model returns other vectors, for example because it splits texts differently. */
const codeVersion = 1

interface Job {
  texts: string[]
  resolve: (result: Encoded) => void
}

/**
 * Embeds texts with the model of this package, in a thread. Texts that are needed soon are embedded before others. A vector has length 1;
 * the cosine of two vectors is the degree to which a skill serves a request. Nothing is sent over the network.
 */
export class SentenceEncoder implements AsyncDisposable {
  readonly #folder: URL
  readonly #kept: RecentMap<string, Float32Array>
  readonly #soon: Job[] = []
  readonly #later: Job[] = []
  #worker: Worker | undefined
  #running: { id: number; job: Job } | undefined
  #id = 0
  /** Why the model cannot be loaded. It stays so until a restart. */
  #failed: string | undefined

  constructor({
    keptMax = 4000,
    folder = new URL('./model/', import.meta.url),
  }: SentenceEncoderOptions = {}) {
    this.#folder = folder
    this.#kept = new RecentMap(keptMax)
  }

  /**
   * Returns vectors in the order of the texts, or the reason why there are none. Never rejects. Reads the first 2,000 characters of a text.
   * @param soon whether a request waits for the vectors. Default: yes
   */
  async embed(texts: readonly string[], soon = true): Promise<Encoded> {
    const short = texts.map((text) => text.slice(0, charsMax))
    const found = new Map<string, Float32Array>()
    for (const text of short) {
      const known = this.#kept.get(keyOf(text))
      if (known !== undefined) found.set(text, known)
    }
    const missing = [...new Set(short)].filter((text) => !found.has(text))
    for (let at = 0; at < missing.length; at += batchMax) {
      const batch = missing.slice(at, at + batchMax)
      const result = await this.#ask(batch, soon)
      if ('failed' in result) return result
      batch.forEach((text, place) => {
        const vector = result.vectors[place] as Float32Array
        found.set(text, vector)
        this.#kept.set(keyOf(text), vector)
      })
    }
    return { vectors: short.map((text) => found.get(text) as Float32Array) }
  }

  /**
   * Identifies the model by the checksums of its files, which the thread compares before it loads them. Undefined if there are none.
   * Never rejects.
   */
  async model(): Promise<string | undefined> {
    const sums = await readFile(new URL('SHA256SUMS', this.#folder), 'utf8').catch(() => '')
    const files = sums
      .split('\n')
      .filter((line) => /^[\da-f]{64} +(encoder\.onnx|vocabulary\.txt)$/.test(line))
    return files.length === 2 ? [`encoder ${codeVersion}`, ...files.toSorted()].join('\n') : undefined
  }

  /**
   * The vectors of skills of many kinds, to which a request is compared: one that is near to many of them says less about each
   * skill. Empty if the file is damaged or missing.
   */
  async background(): Promise<Float32Array[]> {
    const read = (name: string) => readFile(new URL(name, this.#folder))
    const files = await Promise.all([read('SHA256SUMS'), read('background.vec')]).catch(() => undefined)
    if (files === undefined) return []
    const [sums, bytes] = files
    const sum = createHash('sha256').update(bytes).digest('hex')
    if (!sums.includes(`${sum}  background.vec`)) return []
    return Array.from({ length: bytes.length / dimensions }, (_, at) => {
      const own = new Int8Array(bytes.buffer, bytes.byteOffset + at * dimensions, dimensions)
      const length = Math.hypot(...own)
      return Float32Array.from(own, (value) => value / length)
    })
  }

  /** Ends the thread after its current batch. Texts that wait get no vectors. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#failed ??= 'the encoder has ended'
    const worker = this.#worker
    this.#worker = undefined
    this.#end(this.#failed)
    if (worker === undefined) return
    worker.ref()
    const ended = once(worker, 'exit').catch(() => undefined)
    worker.postMessage('close')
    await Promise.race([ended, after(endMaxMs, undefined, { ref: false })])
    await worker.terminate()
  }

  #ask(texts: string[], soon: boolean): Promise<Encoded> {
    if (this.#failed !== undefined) return Promise.resolve({ failed: this.#failed })
    if (soon && this.#soon.length >= soonMax) return Promise.resolve({ failed: busy })
    const { promise, resolve } = Promise.withResolvers<Encoded>()
    const job = { texts, resolve }
    if (soon) this.#soon.push(job)
    else this.#later.push(job)
    this.#next()
    return soon ? this.#withDeadline(job, promise) : promise
  }

  async #withDeadline(job: Job, promise: Promise<Encoded>): Promise<Encoded> {
    const timer = setTimeout(() => {
      const at = this.#soon.indexOf(job)
      if (at !== -1) this.#soon.splice(at, 1)
      job.resolve({ failed: busy })
    }, soonMaxMs)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }

  #next(): void {
    if (this.#running !== undefined) return
    const job = this.#soon.shift() ?? this.#later.shift()
    if (job === undefined) {
      this.#worker?.unref()
      return
    }
    this.#id += 1
    this.#running = { id: this.#id, job }
    this.#worker ??= this.#start()
    this.#worker.ref()
    this.#worker.postMessage({ id: this.#id, texts: job.texts } satisfies EncoderOrder)
  }

  #start(): Worker {
    const worker = new Worker(new URL('./encoder-worker.ts', import.meta.url), {
      name: 'encoder',
      workerData: { folder: this.#folder.href },
      env: {},
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
      // The module of the thread is a file, also if the program was passed as text.
      execArgv: process.execArgv.filter((flag) => !flag.startsWith('--input-type')),
    })
    worker.on('message', (answer: EncoderAnswer) => this.#answer(answer))
    worker.on('error', () => this.#end('the thread of the encoder has ended'))
    worker.once('exit', () => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      this.#end('the thread of the encoder has ended')
    })
    return worker
  }

  #answer(answer: EncoderAnswer): void {
    const running = this.#running
    if (running?.id !== answer.id) return
    if ('failed' in answer && answer.isFinal) {
      this.#failed = answer.failed
      this.#end(answer.failed)
      return
    }
    this.#running = undefined
    if ('failed' in answer) {
      running.job.resolve({ failed: answer.failed })
      this.#next()
      return
    }
    const { vectors } = answer
    const of = (at: number) => vectors.subarray(at * dimensions, (at + 1) * dimensions)
    running.job.resolve({ vectors: running.job.texts.map((_, at) => of(at).slice()) })
    this.#next()
  }

  #end(failed: string): void {
    const jobs = [this.#running?.job, ...this.#soon.splice(0), ...this.#later.splice(0)]
    this.#running = undefined
    for (const job of jobs) job?.resolve({ failed })
  }
}

const keyOf = (text: string): string => createHash('sha256').update(text).digest('base64')
