import type { Route, RouteKind } from '../routing-store.ts'

/** How long a route waits for others, which are written in the same transaction. */
const queuedMs = 50
/** This many waiting routes are written without further delay. */
const queuedMax = 256

interface Batch {
  routes: Map<string, Route>
  written: PromiseWithResolvers<void>
  timer: NodeJS.Timeout
}

/** Routes that are written in batches. Until then, they are found here. */
export class RouteQueue {
  readonly #write: (routes: Route[]) => Promise<void>
  #batch: Batch | undefined
  /** The batches that are being written, the newest last. */
  readonly #writing = new Set<Batch>()

  /** @param write called in the order of the batches, whose writes must keep this order */
  constructor(write: (routes: Route[]) => Promise<void>) {
    this.#write = write
  }

  /** Adds routes, which replace those with the same ids. Resolves when they are written. */
  add(routes: readonly Route[]): Promise<void> {
    this.#batch ??= {
      routes: new Map(),
      written: Promise.withResolvers(),
      timer: setTimeout(() => void this.flush(), queuedMs),
    }
    const { routes: queued, written } = this.#batch
    for (const route of routes) queued.set(keyOf(route), route)
    if (queued.size >= queuedMax) void this.flush()
    return written.promise
  }

  find(owner: string, kind: RouteKind, id: string): Route | undefined {
    const key = keyOf({ owner, kind, id })
    const queued = this.#batch?.routes.get(key)
    if (queued !== undefined || this.#writing.size === 0) return queued
    return [...this.#writing].findLast(({ routes }) => routes.has(key))?.routes.get(key)
  }

  /** Removes and returns the words of a task if its route is not yet being written. */
  takeWords(owner: string, taskId: string): Route['words'] {
    const route = this.#batch?.routes.get(keyOf({ owner, kind: 'task', id: taskId }))
    if (route?.words === undefined) return undefined
    const { words, ...rest } = route
    this.#batch?.routes.set(keyOf(route), rest)
    return words
  }

  /** Begins to write all queued routes. Resolves when they are written. Never rejects: the promises of `add` do. */
  async flush(): Promise<void> {
    const batch = this.#batch
    this.#batch = undefined
    if (batch !== undefined) {
      clearTimeout(batch.timer)
      this.#writing.add(batch)
      this.#write([...batch.routes.values()]).then(batch.written.resolve, batch.written.reject)
      const ended = () => this.#writing.delete(batch)
      batch.written.promise.then(ended, ended)
    }
    await Promise.allSettled([...this.#writing].map(({ written }) => written.promise))
  }
}

const keyOf = ({ owner, kind, id }: Pick<Route, 'owner' | 'kind' | 'id'>): string =>
  JSON.stringify([owner, kind, id])
