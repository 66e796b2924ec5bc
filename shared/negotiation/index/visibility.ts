import type { Offer, OfferedSkill } from '../score/offer.ts'
import { type Profile, profileOf } from '../score/profile.ts'
import type { Row, Rows } from './rows.ts'
import type { WordIndex } from './word-index.ts'

/** What a caller may not see. The sets may change; `version` then grows. */
export interface Restrictions {
  /** Ids of agents that do not exist for the caller. */
  readonly hidden: ReadonlySet<string>
  /** By agent id, the ids of the skills to which the agent is limited for the caller. */
  readonly limited: ReadonlyMap<string, ReadonlySet<string>>
  readonly version: number
}

interface LimitedRow {
  skills: OfferedSkill[]
  /** Positions of the skills in the complete offer. */
  places: number[]
  profile: Profile
}

const hiddenFlag = 1
const limitedFlag = 2

/**
 * The rows as one caller sees them. A ranking with it gives the same result as an index without the hidden parts. Training examples are
 * the exception: they are of all skills of an agent, and are compared with all its texts.
 */
export class Visibility {
  readonly #words: WordIndex
  /** `hiddenFlag` or `limitedFlag`, indexed by row. */
  readonly #flags: Uint8Array
  readonly #limited = new Map<number, LimitedRow>()
  /** The last stem that was counted for each row. */
  readonly #counted: Int32Array
  #stems = 0
  /** Number of hidden rows. */
  readonly hidden: number

  constructor({ hidden, limited }: Restrictions, rows: Rows, words: WordIndex) {
    this.#words = words
    this.#flags = new Uint8Array(rows.capacity)
    this.#counted = new Int32Array(rows.capacity)
    let count = 0
    for (const id of hidden) {
      const row = rows.byId(id)
      if (row === undefined) continue
      this.#flags[row.number] = hiddenFlag
      count += 1
    }
    this.hidden = count
    for (const [id, skills] of limited) {
      const row = rows.byId(id)
      if (row === undefined || this.#flags[row.number] === hiddenFlag) continue
      this.#flags[row.number] = limitedFlag
      this.#limited.set(row.number, limitedRow(row.offer, skills))
    }
  }

  isHidden(row: number): boolean {
    return this.#flags[row] === hiddenFlag
  }

  isLimited(row: number): boolean {
    return this.#flags[row] === limitedFlag
  }

  hasOneSkill(row: number): boolean {
    return this.#limited.get(row)?.skills.length === 1
  }

  /** The numbers of the rows of which the caller sees only some skills. */
  limitedRows(): Iterable<number> {
    return this.#limited.keys()
  }

  /** The offer as the caller sees it. */
  offerOf({ number, offer }: Row): Offer {
    const limited = this.#limited.get(number)
    return limited === undefined ? offer : { ...offer, skills: limited.skills }
  }

  /** The values that belong to the skills that the caller sees. */
  ofSkills<T>({ number }: Row, values: readonly T[]): readonly T[] {
    const limited = this.#limited.get(number)
    return limited === undefined ? values : limited.places.flatMap((at) => values[at] ?? [])
  }

  /** The rarity of a stem among the texts that the caller sees. */
  rarityOf(stem: string): number {
    return this.#words.rarityOf(stem, { agents: this.hidden, holders: this.#invisibleHolders(stem) })
  }

  /** Number of agents that contain the stem only where the caller does not see it. */
  #invisibleHolders(stem: string): number {
    const posting = this.#words.posting(stem)
    if (posting === undefined) return 0
    this.#stems += 1
    let holders = 0
    for (let at = 0; at < posting.length; at += 1) {
      const row = this.#words.rowOf(posting.units[at] ?? 0)
      const flag = this.#flags[row] ?? 0
      if (flag === 0 || this.#counted[row] === this.#stems) continue
      this.#counted[row] = this.#stems
      if (flag === hiddenFlag || !this.#showsStem(row, stem)) holders += 1
    }
    return holders
  }

  #showsStem(row: number, stem: string): boolean {
    return this.#limited.get(row)?.profile.units.some(({ impacts }) => impacts.has(stem)) === true
  }
}

function limitedRow(offer: Offer, allowed: ReadonlySet<string>): LimitedRow {
  const places = offer.skills.flatMap(({ id }, at) => (allowed.has(id) ? [at] : []))
  const skills = offer.skills.filter(({ id }) => allowed.has(id))
  return { skills, places, profile: profileOf({ ...offer, skills }) }
}
