import type { Log } from '@parley/kit/process/log'
import { ConfigError } from '@parley/kit/process/settings'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { Registry } from '../registry/registry.ts'
import type { FeedbackRecorder } from '../routing/learning/feedback.ts'

export interface SharingOptions {
  registry: Registry
  lessons: FeedbackRecorder
  /** Undefined: what others did is known with the next look alone. */
  redisUrl: string | undefined
  log: Log
}

/** How a gateway knows what the others did. */
export interface Sharing extends AsyncDisposable {
  /** Asks Redis, where there is one. */
  ping(): Promise<void>
}

/** The store is the truth, and is looked at so often. */
const everyMs = 1000
/** So many looks are between two that compare everything. */
const thoroughEvery = 60
const channel = 'parley:{gateway}:changed'
const pingMs = 1000
/** How long a stop waits for the look that is under way. */
const lastLookMs = 1000

/** Looks again and again at what other gateways wrote; at once where Redis tells that one did. */
export async function startSharing(options: SharingOptions): Promise<Sharing> {
  const { registry, lessons, redisUrl, log } = options
  await using stack = new AsyncDisposableStack()
  const looks = new Looks(async (thorough) => {
    await registry.sync(thorough)
    await lessons.hear()
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
    subscriber.on('message', () => looks.soon())
    await subscriber.subscribe(channel)
    // A hint that is lost is a delay.
    registry.onWritten(() => void publisher.publish(channel, '').catch(() => {}))
    ping = async () => {
      await Promise.race([publisher.ping(), late()])
    }
  }
  const timer = setInterval(() => looks.soon(), everyMs).unref()
  stack.defer(() => clearInterval(timer))
  const open = stack.move()
  return {
    ping,
    [Symbol.asyncDispose]: async () => {
      await open.disposeAsync()
      await waitAtMost(lastLookMs, looks.ended())
    },
  }
}

function refusal(error: Error): never {
  throw new ConfigError([error.message])
}

async function late(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, pingMs).unref())
  throw new Error(`no answer within ${pingMs} ms`)
}

/** One look after the other; what is asked for meanwhile is one more. */
class Looks {
  readonly #look: (thorough: boolean) => Promise<void>
  readonly #log: Log
  #running: Promise<void> | undefined
  #again = false
  #count = 0
  #failing = false
  #over = false

  constructor(look: (thorough: boolean) => Promise<void>, log: Log) {
    this.#look = look
    this.#log = log
  }

  soon(): void {
    if (this.#running !== undefined) this.#again = true
    else this.#running = this.#run()
  }

  async ended(): Promise<void> {
    this.#over = true
    await this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#again = false
      this.#count += 1
      try {
        await this.#look(this.#count % thoroughEvery === 0)
        this.#failing = false
      } catch (error) {
        if (!this.#failing && !this.#over)
          this.#log.error({ err: error }, 'what other gateways did could not be read')
        this.#failing = true
        break
      }
    } while (this.#again)
    this.#running = undefined
  }
}
