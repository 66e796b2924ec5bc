import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { PaymentStore, TransferOffer } from '../../store/payment-store.ts'
import { amountKeyOf } from '../../store/transfer-offers.ts'
import type { TransferLog, TransferSource } from '../facilitators/facilitator.ts'
import { offersMax, type Transfers } from './transfers.ts'

interface WatcherParts {
  store: PaymentStore
  source: TransferSource
  transfers: Transfers
  log: Log
  /** Whether other processes use the same store. */
  shared: boolean
  /** How often the chain is read while a session can be paid. Default 5 s. */
  intervalMs?: number | undefined
}

/** How often the chain is read while only late transfers are possible. */
const lateIntervalMs = 60_000
/** A transfer may become visible a while after it was made. */
const settlingMs = 5 * 60_000
const leaseMs = 60_000
const failureWaitMaxMs = 5 * 60_000
/** The range of blocks in one request. It is halved after a failure, because nodes limit it. */
const blocksPerRequest = { max: 9000, min: 50 }
/**
 * Blocks that are read again in each round. A node behind a load balancer may not have the newest blocks and return no
 * logs for them. The whole range is read again when a process starts.
 */
const overlapBlocks = 300
const roundTimeoutMs = 60_000

/** Reads the transfers to the receivers of the open offers, and counts them. */
export class TransferWatcher implements AsyncDisposable {
  readonly #parts: WatcherParts & { intervalMs: number }
  readonly #holder = randomUUID()
  readonly #stopping = new AbortController()
  /** The block up to which transfers for an offer were read, by the key of its amount. */
  readonly #readUpTo = new Map<string, number>()
  /** Logs in the overlap that were counted, and their blocks. */
  readonly #counted = new Map<string, number>()
  #range = blocksPerRequest.max
  #failures = 0
  #nextRoundAt = 0
  #running: Promise<void> | undefined

  constructor(parts: WatcherParts) {
    this.#parts = { ...parts, intervalMs: parts.intervalMs ?? 5000 }
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error('the agent is stopping'))
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#tryRound()
      // Offers that other processes make are found in the store within one interval.
      await delay(this.#parts.intervalMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async #tryRound(): Promise<void> {
    try {
      await this.#round()
      this.#failures = 0
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      this.#failures += 1
      this.#range = Math.max(blocksPerRequest.min, Math.floor(this.#range / 2))
      const wait = Math.min(this.#parts.intervalMs * 2 ** this.#failures, failureWaitMaxMs)
      this.#nextRoundAt = Date.now() + wait
      // The error may contain the node's URL, which includes its API key.
      const reason = error instanceof Error ? error.name : 'unknown'
      this.#parts.log.warn({ reason, retry_ms: wait }, 'could not read transfers from the chain')
    }
  }

  async #round(): Promise<void> {
    const { store, source, shared } = this.#parts
    const all = await store.listTransferOffers(offersMax * 2)
    const offers = all.filter(({ terms }) => terms.network === source.network)
    this.#forget(offers)
    const now = Date.now()
    const isNew = offers.some((offer) => !this.#readUpTo.has(keyOf(offer)))
    if (offers.length === 0 || (now < this.#nextRoundAt && (this.#failures > 0 || !isNew))) return
    if (shared && !(await this.#takeLease())) return
    const head = await this.#orStop(source.confirmedBlock())
    if (head !== undefined) {
      await this.#read(offers, head.number)
      await this.#close(offers, head)
    }
    const isPayable = offers.some(({ expiresAt }) => expiresAt + settlingMs > now)
    this.#nextRoundAt = now + (isPayable ? 0 : lateIntervalMs)
  }

  async #read(offers: readonly TransferOffer[], head: number): Promise<void> {
    const assets = unique(offers.map(({ terms }) => terms.asset))
    const payTos = unique(offers.map(({ terms }) => terms.payTo))
    let fromBlock = Math.min(...offers.map((offer) => this.#nextBlock(offer)))
    while (fromBlock <= head) {
      if (this.#parts.shared && !(await this.#takeLease())) return
      const toBlock = Math.min(head, fromBlock + this.#range - 1)
      const logs = await this.#orStop(this.#parts.source.logsIn({ assets, payTos, fromBlock, toBlock }))
      for (const log of logs) await this.#count(log)
      for (const offer of offers) {
        const upTo = this.#readUpTo.get(keyOf(offer)) ?? offer.fromBlock
        this.#readUpTo.set(keyOf(offer), Math.max(upTo, toBlock))
      }
      this.#range = Math.min(blocksPerRequest.max, this.#range * 2)
      fromBlock = toBlock + 1
    }
    for (const [id, block] of this.#counted) if (block < head - 2 * overlapBlocks) this.#counted.delete(id)
  }

  async #count(log: TransferLog): Promise<void> {
    if (this.#counted.has(log.id)) return
    const { source, transfers } = this.#parts
    await transfers.count(await this.#orStop(source.transferOf(log)))
    this.#counted.set(log.id, log.block)
  }

  #nextBlock(offer: TransferOffer): number {
    const upTo = this.#readUpTo.get(keyOf(offer))
    return upTo === undefined ? offer.fromBlock + 1 : Math.max(offer.fromBlock, upTo - overlapBlocks) + 1
  }

  /** Ends the offers whose transfers have all been read and counted. */
  async #close(offers: readonly TransferOffer[], head: { number: number; minedAt: number }): Promise<void> {
    for (const offer of offers) {
      const isRead = (this.#readUpTo.get(keyOf(offer)) ?? 0) >= head.number
      if (isRead && head.minedAt > offer.until + settlingMs)
        await this.#parts.store.removeTransferOffer(offer)
    }
  }

  #forget(offers: readonly TransferOffer[]): void {
    const keys = new Set(offers.map(keyOf))
    for (const key of this.#readUpTo.keys()) if (!keys.has(key)) this.#readUpTo.delete(key)
  }

  #takeLease(): Promise<boolean> {
    const now = Date.now()
    return this.#parts.store.takeTransferLease({ holder: this.#holder, now, until: now + leaseMs })
  }

  /** Rejects when the watcher stops or the node does not respond in time. */
  async #orStop<T>(answer: Promise<T>): Promise<T> {
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(roundTimeoutMs)])
    const { promise, reject } = Promise.withResolvers<never>()
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    answer.catch(() => {})
    try {
      return await Promise.race([answer, promise])
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

const keyOf = ({ terms, sessionId }: TransferOffer) => `${amountKeyOf(terms)} ${sessionId}`
const unique = (texts: readonly string[]) => [...new Set(texts.map((text) => text.toLowerCase()))]
