import { createHash } from 'node:crypto'
import type { Cursors } from '@parley/kit/database/cursor'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'

/** The position of an item, which remains valid even after the item was removed. */
export interface Position {
  /** The timestamp that orders the list, newest first. */
  at: string
  id: string
}

/** The read position in one agent's list: after `last` on the page at cursor `page`. */
export interface Progress {
  /** Id of the agent's entry. */
  agent: string
  page: string | null
  last: Position | null
}

/** The cursor is sent in a response header, and servers and proxies accept headers of at most 16 KiB. */
export const cursorMaxLength = 12_000
/** Sealing adds 28 bytes of nonce and tag, and base64 adds a third. */
const textMaxLength = Math.floor((cursorMaxLength * 3) / 4) - 28

const agentKey = z.string().max(100)
const progress = z.union([
  z.tuple([agentKey]),
  z.tuple([agentKey, z.string().nullable(), z.string(), z.string()]),
  z.tuple([agentKey, z.string()]),
])
type Sealed = z.output<typeof progress>
/** Cursors of earlier versions begin with the progress. */
const cursorText = z.array(z.union([z.int().min(0), progress]))

/** Seals and opens the cursors of lists that are merged from several agents. */
export class MergedCursor {
  readonly #cursors: Cursors

  constructor(cursors: Cursors) {
    this.#cursors = cursors
  }

  /**
   * `left` holds the last entries that did not fit into the cursor.
   * @param passed the number of items of the agents that are not in `all` any more
   */
  seal(
    method: string,
    owner: string,
    all: readonly Progress[],
    passed = 0,
  ): { cursor: string; left: readonly Progress[] } {
    const fitting: Sealed[] = []
    const before = passed === 0 ? [] : [passed]
    let length = 2 + before.join().length + 1
    for (const one of all) {
      const sealed = sealedOf(one)
      length += Buffer.byteLength(JSON.stringify(sealed)) + 1
      if (length > textMaxLength) break
      fitting.push(sealed)
    }
    return {
      cursor: this.#cursors.seal(method, owner, [...before, ...fitting]),
      left: all.slice(fitting.length),
    }
  }

  /** Skips agents that are not among `agents`. @throws ParleyError InvalidParams */
  open(
    method: string,
    owner: string,
    cursor: string,
    agents: readonly string[],
  ): { passed: number; progress: Progress[] } {
    const read = cursorText.safeParse(this.#cursors.open(method, owner, cursor))
    if (!read.success)
      throw new ParleyError('InvalidParams', {
        data: { issues: [{ path: 'cursor', message: 'not a cursor of this list' }] },
      })
    const byKey = new Map(agents.map((agent) => [keyOf(agent), agent]))
    let passed = 0
    const opened = read.data.flatMap((one) => {
      if (typeof one === 'number') {
        passed += one
        return []
      }
      const [key, page = null, at, id] = one
      const agent = byKey.get(key)
      if (agent === undefined) return []
      return { agent, page, last: at === undefined || id === undefined ? null : { at, id } }
    })
    return { passed, progress: opened }
  }
}

function sealedOf({ agent, page, last }: Progress): Sealed {
  const key = keyOf(agent)
  if (last !== null) return [key, page, last.at, last.id]
  return page === null ? [key] : [key, page]
}

/** A short hash, because a cursor may hold many. */
function keyOf(agent: string): string {
  return createHash('sha256').update(agent).digest('base64url').slice(0, 11)
}
