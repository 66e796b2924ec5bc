import { readdirSync, readFileSync, statSync } from 'node:fs'

const everyMs = 1000
const pageBytes = 4096
const mib = 1024 * 1024

interface Watched {
  /** The session of the agent and its children. */
  session: number
  /** The user of the agent if it has its own. */
  uid: number | undefined
  limitMb: number
  onExceeded: (usedMb: number) => void
}

/** Measures the resident memory of agents with their child processes once a second and reports an exceeded limit. */
export class MemoryWatch {
  readonly #watched = new Set<Watched>()
  #timer: NodeJS.Timeout | undefined

  watch(watched: Watched): Disposable {
    this.#watched.add(watched)
    this.#timer ??= setInterval(() => this.measure(), everyMs).unref()
    return { [Symbol.dispose]: () => this.#forget(watched) }
  }

  #forget(watched: Watched): void {
    this.#watched.delete(watched)
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  measure(): void {
    const used = new Map<Watched, number>()
    const bySession = new Map([...this.#watched].map((one) => [one.session, one]))
    // A process that leaves the session is still counted, for the agent with its user.
    const byUser = new Map(
      [...this.#watched].flatMap((one) => (one.uid === undefined ? [] : [[one.uid, one]])),
    )
    for (const { pid, session, bytes } of processes()) {
      const one = bySession.get(session) ?? (byUser.size === 0 ? undefined : byUser.get(userOf(pid)))
      if (one !== undefined) used.set(one, (used.get(one) ?? 0) + bytes)
    }
    for (const [one, bytes] of used) {
      if (bytes > one.limitMb * mib) one.onExceeded(Math.round(bytes / mib))
    }
  }
}

function* processes(): Generator<{ pid: string; session: number; bytes: number }> {
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const stat = contentOf(`/proc/${pid}/stat`)
    // The name of the program, in parentheses, may contain spaces. The session is the 6th field, the memory the 24th.
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields === undefined) continue
    yield { pid, session: Number(fields[3]), bytes: Number(fields[21]) * pageBytes }
  }
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function userOf(pid: string): number {
  try {
    return statSync(`/proc/${pid}`).uid
  } catch {
    return -1
  }
}
