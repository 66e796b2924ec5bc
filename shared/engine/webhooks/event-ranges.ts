import type { DeliveryHealth, EventRange } from '../store/webhook-store.ts'

type LostEvents = NonNullable<DeliveryHealth['lost']>

/** Maximum number of ranges of dropped events. Beyond it, the two oldest ranges become one that includes the events between them. */
const rangesMax = 20

/** Adds a dropped event. @param at milliseconds since 1970 */
export function addLost(lost: LostEvents, sequence: number, at: number): LostEvents {
  const others = removeLost(lost, sequence)
  const before = others.filter(([from]) => from < sequence)
  const after = others.slice(before.length)
  const last = before.at(-1)
  if (last?.[1] === sequence - 1) before[before.length - 1] = [last[0], sequence, at]
  else before.push([sequence, sequence, at])
  const [one, two, ...rest] = [...before, ...after]
  if (one === undefined || two === undefined || rest.length + 2 <= rangesMax) return [...before, ...after]
  return [[one[0], two[1], Math.max(one[2], two[2])], ...rest]
}

/** Removes an event that was delivered later. */
export function removeLost(lost: LostEvents, sequence: number): LostEvents {
  return lost.flatMap(([from, to, at]): LostEvents => {
    if (sequence < from || sequence > to) return [[from, to, at]]
    const [before, after] = [[from, sequence - 1, at] as const, [sequence + 1, to, at] as const]
    return [before, after].filter(([first, last]) => first <= last)
  })
}

/** Returns the ranges without their first event. */
export function withoutFirst([first, ...rest]: readonly EventRange[]): EventRange[] {
  if (first === undefined) return rest
  const [from, to] = first
  return from < to ? [[from + 1, to], ...rest] : rest
}

export function countEvents(ranges: readonly EventRange[]): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0)
}
