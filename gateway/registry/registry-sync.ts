import type { Log } from '@parley/kit/process/log'
import { ConfigError } from '@parley/kit/process/settings'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { Registry } from './registry.ts'

export interface RegistrySyncOptions {
  registry: Registry
  /** Runs after each synchronization of the registry. */
  alsoSync: () => Promise<void>
  /** If undefined, other gateways' changes are found only by polling. */
  redisUrl: string | undefined
  log: Log
}

/** Reads the changes that other gateways write to the shared store. */
export interface RegistrySync extends AsyncDisposable {
  /** Pings Redis if it is configured. */
  ping(): Promise<void>
}

/** The store is authoritative and is polled at this interval. */
const everyMs = 1000
/** Every 60th poll compares all entries. */
const thoroughEvery = 60
const channel = 'parley:{gateway}:changed'
const pingMs = 1000
/** How long disposal waits for a poll in progress. */
const lastPollMs = 1000

/** Polls the shared store at an interval and immediately after a notification through Redis. */
export async function startRegistrySync(options: RegistrySyncOptions): Promise<RegistrySync> {
  const { registry, alsoSync, redisUrl, log } = options
  await using stack = new AsyncDisposableStack()
  const poller = new Poller(async (thorough) => {
    await registry.sync(thorough)
    await alsoSync()
  }, log)
  let ping = async () => {}
  if (redisUrl !== undefined) {
    const { connectRedis } = await import('@parley/kit/process/redis')
    const connect = async (more: object) =>
      stack.adopt(await connectRedis({ url: redisUrl, log, options: more }).catch(refusal), (redis) =>
        redis.disconnect(),
      )
    const publisher = await connect({})
    const subscriber = await connect({ enableOfflineQueue: true })
    subscriber.on('message', () => poller.trigger())
    await subscriber.subscribe(channel)
    // A lost notification only delays the other gateways until their next poll.
    registry.listeners.onWritten = () => void publisher.publish(channel, '').catch(() => {})
    ping = async () => {
      await Promise.race([publisher.ping(), pingTimeout()])
    }
  }
  const timer = setInterval(() => poller.trigger(), everyMs).unref()
  stack.defer(() => clearInterval(timer))
  const open = stack.move()
  return {
    ping,
    [Symbol.asyncDispose]: async () => {
      await open.disposeAsync()
      await waitAtMost(lastPollMs, poller.stop())
    },
  }
}

function refusal(error: Error): never {
  throw new ConfigError([error.message])
}

async function pingTimeout(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, pingMs).unref())
  throw new Error(`no answer within ${pingMs} ms`)
}

/** Runs one poll at a time. Triggers that arrive during a poll are merged into a single further poll. */
class Poller {
  readonly #poll: (thorough: boolean) => Promise<void>
  readonly #log: Log
  #running: Promise<void> | undefined
  #again = false
  #count = 0
  #failing = false
  #stopped = false

  constructor(poll: (thorough: boolean) => Promise<void>, log: Log) {
    this.#poll = poll
    this.#log = log
  }

  trigger(): void {
    if (this.#running !== undefined) this.#again = true
    else this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#again = false
      this.#count += 1
      try {
        await this.#poll(this.#count % thoroughEvery === 0)
        this.#failing = false
      } catch (error) {
        if (!this.#failing && !this.#stopped)
          this.#log.error({ err: error }, 'changes of other gateways could not be read')
        this.#failing = true
        break
      }
    } while (this.#again)
    this.#running = undefined
  }
}
