import type { Caller } from '@parley/kit/auth/caller'
import type { Log } from '@parley/kit/process/log'
import type { FastifyReply } from 'fastify'
import type { AgentEntry } from '../../registry/entry.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The event streams of agents that this gateway forwards. */
    openStreams?: OpenStreams
  }
}

export interface OpenStreamsOptions {
  /** Returns the agent's entry, or undefined if it was removed. */
  find: (id: string) => AgentEntry | undefined
  /** Whether the caller may call the agent. */
  isAllowed: (caller: Caller | undefined, entry: AgentEntry) => Promise<boolean>
  log: Log
}

/** Cuts event streams when a changed policy no longer allows their callers to call the agent. */
export class OpenStreams {
  readonly #options: OpenStreamsOptions
  readonly #of = new Map<string, Set<FastifyReply>>()

  constructor(options: OpenStreamsOptions) {
    this.#options = options
  }

  add(reply: FastifyReply, { id }: AgentEntry): void {
    const open = this.#of.get(id) ?? new Set()
    this.#of.set(id, open.add(reply))
    reply.raw.once('close', () => {
      open.delete(reply)
      if (open.size === 0 && this.#of.get(id) === open) this.#of.delete(id)
    })
  }

  /** Checks the streams of the agent after a change of its policy. A stream that cannot be checked is cut. */
  async check(id: string): Promise<void> {
    const { find, isAllowed, log } = this.#options
    const entry = find(id)
    for (const reply of Array.from(this.#of.get(id) ?? [])) {
      const { caller } = reply.request.token ?? {}
      const allowed = entry === undefined || (await isAllowed(caller, entry).catch(() => false))
      if (allowed) continue
      log.info({ agent: id, who: caller?.id }, 'event stream was cut because the policy has changed')
      reply.raw.destroy()
    }
  }
}
