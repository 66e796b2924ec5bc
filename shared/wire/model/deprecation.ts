/** Marks a name in a table of settings, methods, fields or manifest names as deprecated (CHANGELOG.md, "Deprecated"). */
export interface DeprecationMark {
  /** The day of the release that deprecated it, `YYYY-MM-DD`. */
  since: `${number}-${number}-${number}`
  /** What to use instead. */
  use: string
}

/** A deprecated name that is in use. */
export interface Deprecation extends DeprecationMark {
  name: string
}

/** The `Deprecation` header (RFC 9745) with the date of the name that was deprecated first. */
export function deprecationHeader(inUse: readonly DeprecationMark[]): { deprecation?: string } {
  if (inUse.length === 0) return {}
  const seconds = inUse.map(({ since }) => Date.parse(`${since}T00:00:00Z`) / 1000)
  return { deprecation: `@${Math.min(...seconds)}` }
}

/** The deprecated fields of an object, by their path: `configuration.longRunning`. */
export function deprecatedFields(
  marks: Readonly<Record<string, DeprecationMark>>,
  given: Readonly<Record<string, unknown>>,
): Deprecation[] {
  return Object.entries(marks).flatMap(([name, mark]) => (hasPath(given, name) ? [{ name, ...mark }] : []))
}

function hasPath(given: unknown, path: string): boolean {
  let value: unknown = given
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return false
    value = Reflect.get(value, key)
  }
  return value !== undefined && value !== null
}
