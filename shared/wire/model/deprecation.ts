/** Marks the name of a setting, method, field or manifest entry as deprecated (CHANGELOG.md, "Deprecated"). */
export interface DeprecationMark {
  /** The release date of the version that deprecated it, `YYYY-MM-DD`. */
  since: `${number}-${number}-${number}`
  /** What to use instead. */
  use: string
}

/** A deprecated name that is in use. */
export interface Deprecation extends DeprecationMark {
  name: string
}

/** The `Deprecation` header (RFC 9745), dated when the first of the names was deprecated. */
export function deprecationHeader(inUse: readonly DeprecationMark[]): { deprecation?: string } {
  if (inUse.length === 0) return {}
  const seconds = inUse.map(({ since }) => Date.parse(`${since}T00:00:00Z`) / 1000)
  return { deprecation: `@${Math.min(...seconds)}` }
}

/** Finds the deprecated fields of an object by their paths, such as `configuration.longRunning`. */
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
