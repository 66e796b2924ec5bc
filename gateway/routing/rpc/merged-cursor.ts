import { createHash } from 'node:crypto'
import type { Cursors } from '@parley/kit/database/cursor'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'

/** An item that was read, by which the next one is found even when this one is removed meanwhile. */
export interface Position {
  /** The time by which the list is ordered, newest first. */
  at: string
  id: string
}

/** How far the list of one agent was read: behind `last` of the page that `page` opens. */
export interface Progress {
  /** Id of the agent's entry. */
  agent: string
  page: string | null
  last: Position | null
}

/** The cursor travels in a response header, of which servers and proxies take 16 KiB at most. */
export const cursorMaxLength = 12_000
/** What is sealed grows by a third, with 28 bytes of nonce and tag. */
const textMaxLength = Math.floor((cursorMaxLength * 3) / 4) - 28

const agentKey = z.string().max(100)
const progress = z.union([
  z.tuple([agentKey]),
  z.tuple([agentKey, z.string().nullable(), z.string(), z.string()]),
  z.tuple([agentKey, z.string()]),
])
type Sealed = z.output<typeof progress>
const cursorText = z.array(progress)

/** Seals and opens the cursors of lists that are gathered from several agents. */
export class MergedCursor {
  readonly #cursors: Cursors

  constructor(cursors: Cursors) {
    this.#cursors = cursors
  }

  /** `left`: those that found no room in the cursor, the last ones given. */
  seal(
    method: string,
    owner: string,
    all: readonly Progress[],
  ): { cursor: string; left: readonly Progress[] } {
    const fitting: Sealed[] = []
    let length = 2
    for (const one of all) {
      const sealed = sealedOf(one)
      length += Buffer.byteLength(JSON.stringify(sealed)) + 1
      if (length > textMaxLength) break
      fitting.push(sealed)
    }
    return { cursor: this.#cursors.seal(method, owner, fitting), left: all.slice(fitting.length) }
  }

  /** Agents that are no longer among `agents` are left out. @throws ParleyError InvalidParams */
  open(method: string, owner: string, cursor: string, agents: readonly string[]): Progress[] {
    const read = cursorText.safeParse(this.#cursors.open(method, owner, cursor))
    if (!read.success)
      throw new ParleyError('InvalidParams', {
        data: { issues: [{ path: 'cursor', message: 'not a cursor of this list' }] },
      })
    const byKey = new Map(agents.map((agent) => [keyOf(agent), agent]))
    return read.data.flatMap(([key, page = null, at, id]) => {
      const agent = byKey.get(key)
      if (agent === undefined) return []
      return { agent, page, last: at === undefined || id === undefined ? null : { at, id } }
    })
  }
}

function sealedOf({ agent, page, last }: Progress): Sealed {
  const key = keyOf(agent)
  if (last !== null) return [key, page, last.at, last.id]
  return page === null ? [key] : [key, page]
}

/** Short, for there may be many. */
function keyOf(agent: string): string {
  return createHash('sha256').update(agent).digest('base64url').slice(0, 11)
}
