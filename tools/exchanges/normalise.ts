/** Replaces volatile values with placeholders, numbered by first appearance. All other bytes are unchanged. */
export class Normaliser {
  readonly #literals: [value: string, name: string][]
  readonly #numbers = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  constructor(literals: readonly [value: string, name: string][]) {
    this.#literals = [...literals].sort(([a], [b]) => b.length - a.length)
  }

  /** Replaces `value` with `<name>` from now on. */
  hide(value: string, name: string): void {
    if (value === '' || this.#literals.some(([known]) => known === value)) return
    this.#literals.push([value, name])
    this.#literals.sort(([a], [b]) => b.length - a.length)
  }

  text(text: string): string {
    let result = text
    for (const [value, name] of this.#literals) {
      result = result.replaceAll(value, `<${name}>`)
      const encoded = encodeURIComponent(value)
      if (encoded !== value) result = result.replaceAll(encoded, `<${name}%>`)
    }
    for (const [kind, pattern] of patterns) {
      result = result.replace(pattern, (found) =>
        numbered.has(kind) ? this.#number(kind, found) : `<${kind}>`,
      )
    }
    for (const [pattern, to] of fields) result = result.replace(pattern, to)
    return result
  }

  #number(kind: string, value: string): string {
    const known = this.#numbers.get(value)
    if (known !== undefined) return known
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    const name = `<${kind}-${count}>`
    this.#numbers.set(value, name)
    return name
  }
}

/** In this order: a longer form before the forms that it contains. */
const patterns: [kind: string, pattern: RegExp][] = [
  ['jwt', /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g],
  ['uuid', /(?<![\da-f])[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}(?![\da-f])/g],
  ['UUID', /[\dA-F]{8}-[\dA-F]{4}-[\dA-F]{4}-[\dA-F]{4}-[\dA-F]{12}/g],
  ['time', /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00/g],
  ['time-z', /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g],
  ['date', /(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g],
  ['time-utc', /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g],
  ['clock', /(?<=>)\d\d:\d\d UTC(?=<)/g],
  ['evm-signature', /0x[\da-f]{130}(?![\da-f])/g],
  ['capture', /(?<=\/pay\/)[\w-]{32}(?![\w-])/g],
  ['tx', /0x[\da-f]{64}(?![\da-f])/g],
  ['hex64', /(?<![\w-])[\da-f]{64}(?![\w-])/g],
  ['hex32', /(?<![\w-])[\da-f]{32}(?![\w-])/g],
  ['hex16', /(?<=parley-)[\da-f]{16}(?![\w-])/g],
  ['signature', /(?<![\w-])[1-9A-HJ-NP-Za-km-z]{85,88}(?![\w-])/g],
  ['multibase', /(?<![\w-])z[1-9A-HJ-NP-Za-km-z]{46,48}(?![\w-])/g],
  // 32 bytes in base64url (tokens, hashes) or base58 (keys).
  ['bytes32', /(?<![\w-])(?!0x[\da-fA-F]{40}(?![\w-]))(?=[\w-]*[A-Z])[\w-]{42,44}(?![\w-])/g],
  ['id21', /(?<="client_id":"|client_id=|\/register\/|\/clients\/)[\w-]{21,22}(?![\w-])/g],
]

/** Values of other kinds are not numbered, because the clock determines which of them are equal. */
const numbered = new Set(['uuid', 'tx', 'hex64', 'hex32', 'hex16', 'capture', 'multibase', 'bytes32', 'id21'])

const fields: [RegExp, string][] = [
  // The code contains the port and the token of the address.
  [/(<svg class="qr" [^>]*?) viewBox.*?<\/svg>/g, '$1 …</svg>'],
  [/("validBefore"):"\d{10}"/g, '$1:"<seconds>"'],
  [/(&quot;(?:now|expiresAt)&quot;):\d{13}/g, '$1:<milliseconds>'],
  [/takes about \d+ ms \(measured\)/g, 'takes about <integer> ms (measured)'],
  [/\d+ % of its tasks ended well/g, '<integer> % of its tasks ended well'],
  [/score 0\.\d+ is below/g, 'score <figure> is below'],
  [/("uptime_seconds"):\d+/g, '$1:<integer>'],
  [/("node_version"):"[\d.]+"/g, '$1:"<version>"'],
  [/("platform"):"\w+"/g, '$1:"<platform>"'],
  [/("(?:iat|exp|client_id_issued_at|auth_time)"):\d{10}/g, '$1:<seconds>'],
]
