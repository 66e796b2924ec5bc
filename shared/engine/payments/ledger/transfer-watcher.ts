import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { PaymentStore, TransferOffer, TransferProgress } from '../../store/payment-store.ts'
import { ChainReadError, type TransferLog, type TransferSource } from '../facilitators/facilitator.ts'
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
/** Shorter than the lease, so that the lease is extended before it ends. */
const requestTimeoutMs = 20_000
const failureWaitMaxMs = 5 * 60_000
const blocksPerRequestMax = 9000
/** A node behind a load balancer may lack the newest blocks and return no logs for them, so that some are read again. */
const blocksReadAgainMax = 300
/** How long a range that the node refused is not tried again. */
const refusedRangeMs = 60 * 60_000
/** Transfers of other amounts that are looked up per request, to report only those that are not signed payments. */
const otherAmountsMax = 20
/** The holder of the lease in a store that one process uses: after a crash, the next process has it at once. */
const onlyHolder = 'only-process'

interface Block {
  number: number
  minedAt: number
}

/** Reads the transfers to the receivers of the open offers, and counts them. */
export class TransferWatcher implements AsyncDisposable {
  readonly #parts: WatcherParts & { intervalMs: number }
  readonly #holder: string
  readonly #stopping = new AbortController()
  /** Logs that were handled and may be read again, and their blocks. */
  readonly #handled = new Map<string, number>()
  #range = blocksPerRequestMax
  /** The largest range to try until this time. */
  #rangeLimit = { blocks: blocksPerRequestMax, until: 0 }
  #failures = 0
  #nextLateRoundAt = 0
  #retryAt = 0
  #running: Promise<void> | undefined

  constructor(parts: WatcherParts) {
    this.#parts = { ...parts, intervalMs: parts.intervalMs ?? 5000 }
    this.#holder = parts.shared ? randomUUID() : onlyHolder
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
    if (Date.now() < this.#retryAt) return
    try {
      await this.#round()
      this.#failures = 0
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      this.#failures += 1
      const wait = Math.min(this.#parts.intervalMs * 2 ** this.#failures, failureWaitMaxMs)
      this.#retryAt = Date.now() + wait
      const cause = error instanceof ChainReadError ? { reason: error.message } : { err: error }
      this.#parts.log.warn({ ...cause, retry_ms: wait }, 'could not read transfers from the chain')
    }
  }

  async #round(): Promise<void> {
    const now = Date.now()
    const offers = await this.#openOffers(now)
    const isPayable = offers.some(({ expiresAt }) => expiresAt + settlingMs > now)
    if (offers.length === 0 || (!isPayable && now < this.#nextLateRoundAt)) return
    const progress = await this.#takeLease()
    if (progress === undefined) return
    try {
      const head = await this.#orStop(this.#parts.source.confirmedBlock())
      if (head === undefined || !(await this.#read(offers, head.number, progress))) return
      await this.#close(offers, head)
      this.#nextLateRoundAt = now + lateIntervalMs
    } catch (error) {
      this.#stopping.signal.throwIfAborted()
      await this.#takeLease(behind(await this.#parts.store.transferProgress(this.#network)))
      throw error
    }
  }

  /** Returns the offers on this network. Those on another network, which the agent used before, end with their time. */
  async #openOffers(now: number): Promise<TransferOffer[]> {
    const { store } = this.#parts
    const all = await store.listTransferOffers(offersMax * 2)
    const isHere = ({ terms }: TransferOffer) => terms.network === this.#network
    for (const offer of all) if (!isHere(offer) && offer.until < now) await store.removeTransferOffer(offer)
    return all.filter(isHere)
  }

  /** Returns false if another process has taken the lease. */
  async #read(offers: readonly TransferOffer[], head: number, progress: TransferProgress): Promise<boolean> {
    const first = Math.min(...offers.map(({ fromBlock }) => fromBlock))
    // A test chain that was reset has fewer blocks than were read.
    const readUpTo = Math.min(progress.readUpTo ?? first, head)
    // With at most half a request of them, every request makes progress.
    const readAgain = Math.min(blocksReadAgainMax, Math.floor(this.#range / 2))
    let fromBlock = Math.max(first, readUpTo - readAgain) + 1
    let current: TransferProgress | undefined = progress
    while (fromBlock <= head && current !== undefined) {
      const { logs, toBlock } = await this.#logsFrom(fromBlock, head, offers)
      await this.#handle(logs)
      const read = { readUpTo: Math.max(readUpTo, toBlock) }
      current = await this.#takeLease(toBlock < head ? behind({ ...current, ...read }) : read)
      this.#failures = 0
      const kept = toBlock - 2 * blocksReadAgainMax
      for (const [id, block] of this.#handled) if (block < kept) this.#handled.delete(id)
      fromBlock = toBlock + 1
    }
    return current !== undefined
  }

  /** Reads as many blocks as the node permits in one request. */
  async #logsFrom(
    fromBlock: number,
    head: number,
    offers: readonly TransferOffer[],
  ): Promise<{ logs: TransferLog[]; toBlock: number }> {
    const assets = unique(offers.map(({ terms }) => terms.asset))
    const payTos = unique(offers.map(({ terms }) => terms.payTo))
    for (;;) {
      const toBlock = Math.min(head, fromBlock + this.#range - 1)
      const blocks = toBlock - fromBlock + 1
      try {
        const logs = await this.#orStop(this.#parts.source.logsIn({ assets, payTos, fromBlock, toBlock }))
        const isLimited = Date.now() < this.#rangeLimit.until
        this.#range = Math.min(isLimited ? this.#rangeLimit.blocks : blocksPerRequestMax, this.#range * 2)
        return { logs, toBlock }
      } catch (error) {
        if (!(error instanceof ChainReadError) || !error.isRangeRefused || blocks === 1) throw error
        this.#range = Math.floor(blocks / 2)
        this.#rangeLimit = { blocks: this.#range, until: Date.now() + refusedRangeMs }
        await this.#takeLease()
      }
    }
  }

  async #handle(logs: readonly TransferLog[]): Promise<void> {
    let leaseTakenAt = Date.now()
    const others: TransferLog[] = []
    for (const found of logs) {
      if (this.#handled.has(found.id)) continue
      if (await this.#parts.transfers.isOffered(found)) await this.#count(found)
      else others.push(found)
      this.#handled.set(found.id, found.block)
      if (Date.now() - leaseTakenAt < leaseMs / 2) continue
      await this.#takeLease()
      leaseTakenAt = Date.now()
    }
    await this.#report(others)
  }

  /** Anyone can send a token in small amounts, and each look-up is two requests to the node. */
  async #report(others: readonly TransferLog[]): Promise<void> {
    let examined = 0
    try {
      for (const found of others.slice(0, otherAmountsMax)) {
        await this.#count(found)
        examined += 1
      }
    } catch {
      // The others are not needed for a payment.
    }
    if (examined < others.length)
      this.#parts.log.warn(
        { transfers: others.length - examined, pay_to: unique(others.map(({ payTo }) => payTo)) },
        'transfers match no payment session and were not examined: compare the receiver at a block explorer with the payments',
      )
  }

  async #count(found: TransferLog): Promise<void> {
    const { source, transfers } = this.#parts
    await transfers.count(await this.#orStop(source.transferOf(found)))
  }

  /** Ends the offers whose transfers have all been read and counted. */
  async #close(offers: readonly TransferOffer[], head: Block): Promise<void> {
    for (const offer of offers) {
      if (head.minedAt > offer.until + settlingMs && head.number > offer.fromBlock)
        await this.#parts.store.removeTransferOffer(offer)
    }
  }

  get #network(): string {
    return this.#parts.source.network
  }

  #takeLease(progress?: TransferProgress): Promise<TransferProgress | undefined> {
    const now = Date.now()
    const lease = { network: this.#network, holder: this.#holder, now, until: now + leaseMs, progress }
    return this.#parts.store.takeTransferLease(lease)
  }

  /** Rejects when the watcher stops or the node does not respond in time. */
  async #orStop<T>(answer: Promise<T>): Promise<T> {
    const timeout = AbortSignal.timeout(requestTimeoutMs)
    const signal = AbortSignal.any([this.#stopping.signal, timeout])
    const { promise, reject } = Promise.withResolvers<never>()
    const stop = () =>
      reject(timeout.aborted ? new ChainReadError('the node did not respond in time', true) : signal.reason)
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

const behind = (progress: TransferProgress): TransferProgress => ({
  ...progress,
  behindSince: progress.behindSince ?? Date.now(),
})
const unique = (texts: readonly string[]) => [...new Set(texts.map((text) => text.toLowerCase()))]
