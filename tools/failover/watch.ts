import { setTimeout as wait } from 'node:timers/promises'
import type { FailoverCluster } from './cluster.ts'

const everyMs = 100

/** Polls the public registry entries of the agents at `GET /registry/agents/{slug}`. */
export class Watch implements AsyncDisposable {
  readonly #aside = new Map<string, boolean>()
  readonly #stop = new AbortController()
  readonly #running: Promise<unknown>

  constructor({ url, agents }: FailoverCluster) {
    this.#running = Promise.all(agents.map(({ slug }) => this.#watch(`${url}/registry/agents/${slug}`, slug)))
  }

  /** Whether the entry says that the agent is ejected; undefined if there is no entry. */
  isEjected(slug: string): boolean | undefined {
    return this.#aside.get(slug)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #watch(url: string, slug: string): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        const answer = await fetch(url, { signal: this.#stop.signal })
        const { quarantined } = (await answer.json()) as { quarantined?: boolean }
        if (answer.ok && quarantined !== undefined) this.#aside.set(slug, quarantined)
      } catch {
        // The entry is polled again soon.
      }
      await wait(everyMs)
    }
  }
}
