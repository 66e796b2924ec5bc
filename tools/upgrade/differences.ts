/** Fields that describe the present state of a process, not stored data. */
const volatile = new Set([
  'last_seen',
  'lease_until',
  'load',
  'replicas',
  'measurements',
  'url',
  'revision',
  'status_since',
  'since',
  'proof',
  'card',
  'card_changes',
])

/** Lists what `after` lacks or changes. Additional fields and list items of `after` are not differences. */
export function differences(before: unknown, after: unknown, at = ''): string[] {
  if (Array.isArray(before)) {
    if (!Array.isArray(after)) return [`${at} is no longer a list`]
    const lengths =
      before.length === after.length ? [] : [`${at} has ${after.length} items, not ${before.length}`]
    return [
      ...lengths,
      ...before.flatMap((item, index) => differences(item, after[index], `${at}[${index}]`)),
    ]
  }
  if (isObject(before)) {
    if (!isObject(after)) return [`${at} is missing`]
    return Object.keys(before)
      .filter((key) => !volatile.has(key))
      .flatMap((key) => differences(before[key], after[key], `${at}.${key}`))
  }
  return before === after ? [] : [`${at} was ${JSON.stringify(before)} and is ${JSON.stringify(after)}`]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
