/** The differences between two JSON values, for people who review a card. */

/**
 * @typedef {{ path: string, before: unknown, after: unknown }} ValueChange `undefined` if the value did or does not exist
 */

/** More differences are counted only. */
const changesMax = 200

/**
 * Returns the differences between two values, one for each path. Entries of lists are compared by their `id` or, if they are
 * plain texts, as sets.
 * @param {unknown} before
 * @param {unknown} after
 * @param {string} [path]
 * @returns {ValueChange[]}
 */
export function valueChanges(before, after, path = '') {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  const [old, now] = [fieldsOf(before), fieldsOf(after)]
  if (old === undefined || now === undefined) return [{ path, before, after }]
  const names = [...new Set([...old.keys(), ...now.keys()])]
  return names
    .flatMap((name) => valueChanges(old.get(name), now.get(name), path === '' ? name : `${path}.${name}`))
    .slice(0, changesMax)
}

/**
 * @param {unknown} value
 * @returns {Map<string, unknown> | undefined}
 */
function fieldsOf(value) {
  if (Array.isArray(value)) {
    if (value.every((entry) => typeof entry === 'string'))
      return new Map(value.map((entry) => [entry, entry]))
    const ids = value.map(idOf)
    if (new Set(ids).size !== ids.length || ids.includes(undefined)) return undefined
    return new Map(value.map((entry, index) => [ids[index] ?? '', entry]))
  }
  if (typeof value === 'object' && value !== null) return new Map(Object.entries(value))
  return undefined
}

/**
 * @param {unknown} entry
 * @returns {string | undefined}
 */
const idOf = (entry) =>
  typeof entry === 'object' && entry !== null && 'id' in entry && typeof entry.id === 'string'
    ? entry.id
    : undefined

/**
 * Returns a value as text: strings unchanged, other values as JSON.
 * @param {unknown} value
 */
export const valueText = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
