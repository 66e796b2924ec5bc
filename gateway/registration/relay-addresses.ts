import type { Log } from '@parley/kit/process/log'
import { z } from 'zod'
import type { RelayAddress } from '../addresses.ts'
import { isLoopback } from '../oauth/client-rules.ts'
import type { OAuthStore } from '../oauth/oauth-store.ts'

const model = 'RelayAddress'
/** How often the addresses are written and read, and for how long a written address counts. */
const [syncMs, freshMs] = [2000, 10_000]
const stored = z.object({ host: z.string(), url: z.url(), at: z.number() })

export interface RelayAddressesOptions {
  store: Pick<OAuthStore, 'upsert' | 'list'>
  /** Whether other gateways use the same store. */
  isShared: boolean
  /** The name of this machine. */
  host: string
  log: Log
  /** Defaults to `Date.now`. */
  now?: () => number
}

/**
 * The address of the relay: that of this gateway, or else one that another gateway has stored. A relay at a loopback address
 * is used on its own machine only.
 */
export class RelayAddresses implements RelayAddress, Disposable {
  readonly #options: RelayAddressesOptions
  readonly #timer: NodeJS.Timeout | undefined
  #own: string | undefined
  /** Addresses of earlier processes of this gateway's relay, which are still stored. */
  readonly #gone = new Set<string>()
  #other: string | undefined
  #isFailing = false

  constructor(options: RelayAddressesOptions) {
    this.#options = options
    if (options.isShared) this.#timer = setInterval(() => void this.#trySync(), syncMs).unref()
  }

  get url(): string | undefined {
    return this.#own ?? this.#other
  }

  /** Sets the address of this gateway's relay. */
  set url(url: string | undefined) {
    if (this.#own !== undefined) this.#gone.add(this.#own)
    if (url !== undefined) this.#gone.delete(url)
    this.#own = url
    if (this.#options.isShared) void this.#trySync()
  }

  /** Stores the own address, or reads those of the other gateways. Called by the timer. */
  async sync(): Promise<void> {
    const { store, host, now = Date.now } = this.#options
    const own = this.#own
    const write = (url: string, at: number) => {
      const expiresAt = Math.ceil((now() + freshMs) / 1000)
      return store.upsert({ model, id: `${host} ${url}`, payload: { host, url, at }, expiresAt })
    }
    for (const url of this.#gone) {
      await write(url, 0)
      this.#gone.delete(url)
    }
    if (own !== undefined) {
      await write(own, now())
      return
    }
    const read = (await store.list(model)).flatMap((payload) => stored.safeParse(payload).data ?? [])
    const reachable = read
      .filter((one) => now() - one.at < freshMs && (one.host === host || !isLoopback(one.url)))
      .sort((a, b) => Number(b.host === host) - Number(a.host === host) || b.at - a.at)
    this.#other = reachable[0]?.url
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #trySync(): Promise<void> {
    try {
      await this.sync()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#options.log.warn({ err: error }, 'relay addresses could not be exchanged')
      this.#isFailing = true
    }
  }
}
