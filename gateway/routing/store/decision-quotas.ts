import { createHmac, type KeyObject } from 'node:crypto'

/** Maximum numbers of decision records, kept separate so that anonymous requests do not displace callers' records. */
export interface DecisionBounds {
  callers: number
  anonymous: number
}

export const decisionBounds: DecisionBounds = { callers: 100_000, anonymous: 20_000 }

/** Number of holders considered in one round, starting with those that have the most records. */
export const holdersMax = 1000

/** The number of records of a caller or an anonymous address. */
export interface HolderCount {
  holder: string
  count: number
}

/** The quota holder of a record without a caller, as a keyed hash that does not reveal the address. */
export function anonymousHolder(address: string, key: KeyObject): string {
  return createHmac('sha256', key).update(`decisions ${address}`).digest('base64url').slice(0, 22)
}

/**
 * How many of each holder's oldest records to remove so that `excess` are removed in total. The largest holders are
 * levelled down first, so that no holder displaces the records of others.
 * @param counts sorted by count, largest first
 */
export function surplusOf(counts: readonly HolderCount[], excess: number): HolderCount[] {
  let sum = 0
  for (const [at, { count }] of counts.entries()) {
    sum += count
    const next = counts[at + 1]?.count ?? 0
    const isEnough = sum - (at + 1) * next >= excess
    if (!isEnough && at + 1 < counts.length) continue
    const level = Math.max(0, Math.floor((sum - excess) / (at + 1)))
    let left = excess
    return counts.slice(0, at + 1).flatMap(({ holder, count: has }) => {
      const goes = Math.min(left, has - level)
      left -= goes
      return goes > 0 ? [{ holder, count: goes }] : []
    })
  }
  return []
}
