import { createHash, randomBytes } from 'node:crypto'
import os from 'node:os'
import type { Log } from '@parley/kit/process/log'
import { connectRedis } from '@parley/kit/process/redis'
import type { Redis } from 'ioredis'

export interface RedisUsersOptions {
  /** REDIS_URL of the gateway. */
  url: string
  /** Distinguishes the users of several gateways at one Redis server. */
  dataDir: string
  log: Log
}

/**
 * Gives each agent a Redis user that reaches only the keys and channels of that agent. The users exist only in the memory of
 * the server: they are created when an agent has proven its identity, and again after each reconnection.
 */
export class RedisUsers implements AsyncDisposable {
  readonly #redis: Redis
  readonly #url: string
  readonly #prefix: string
  readonly #users = new Map<string, { password: string; agentId?: string }>()

  private constructor(redis: Redis, { url, dataDir, log }: RedisUsersOptions) {
    this.#redis = redis
    this.#url = url
    const gateway = createHash('sha256').update(`${os.hostname()} ${dataDir}`).digest('hex').slice(0, 12)
    this.#prefix = `parley-${gateway}-`
    redis.on('ready', () => {
      for (const [name, { agentId }] of this.#users) {
        if (agentId === undefined) continue
        this.grant(name, agentId).catch((error: unknown) =>
          log.error({ err: error, agent: name }, 'Redis user of the agent could not be created'),
        )
      }
    })
  }

  /** Resolves with the reason if the server or the user of the gateway cannot create users. */
  static async open(options: RedisUsersOptions): Promise<RedisUsers | { reason: string }> {
    const redis = await connectRedis({ url: options.url, log: options.log })
    const users = new RedisUsers(redis, options)
    try {
      await users.#set(`${users.#prefix}trial`, ['off', ...rulesFor('trial')])
      await redis.call('ACL', 'DELUSER', `${users.#prefix}trial`)
      return users
    } catch (error) {
      redis.disconnect()
      return { reason: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Returns REDIS_URL with the user of an agent. */
  urlFor(agent: string): string {
    const url = new URL(this.#url)
    url.username = this.#prefix + agent
    url.password = this.#userOf(agent).password
    return url.href
  }

  /** Gives the user of an agent access to the data of its identity. */
  async grant(agent: string, agentId: string): Promise<void> {
    const user = this.#userOf(agent)
    user.agentId = agentId
    await this.#set(this.#prefix + agent, ['on', `>${user.password}`, ...rulesFor(agentId)])
  }

  #userOf(agent: string): { password: string; agentId?: string } {
    const known = this.#users.get(agent)
    if (known !== undefined) return known
    const user = { password: randomBytes(24).toString('base64url') }
    this.#users.set(agent, user)
    return user
  }

  async #set(user: string, rules: string[]): Promise<void> {
    await this.#redis.call('ACL', 'SETUSER', user, 'reset', ...rules)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const names = [...this.#users.keys()].map((agent) => this.#prefix + agent)
    if (names.length > 0) await this.#redis.call('ACL', 'DELUSER', ...names).catch(() => undefined)
    this.#redis.disconnect()
  }
}

/** Glob characters do not occur in an agent id, which is a UUID. */
function rulesFor(agentId: string): string[] {
  // The relay serves several agents, with names of the form <agent id>.<ID of the agent's entry>.
  const names = [agentId, `${agentId}.*`]
  const data = names.flatMap((name) => [`parley:{${name}}:*`, `parley:${name}:*`])
  return [...data.flatMap((one) => [`~${one}`, `&${one}`]), '+@all', '-@admin', '-@dangerous', '+info']
}
