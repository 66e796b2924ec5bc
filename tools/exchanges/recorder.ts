import { type Answer, bytesOf, type Sent, send } from './http.ts'
import { Normaliser } from './normalise.ts'

/** For longer request bodies only the length is recorded. */
const shownMaxChars = 600

export interface Recorded {
  title: string
  text: string
}

/** Values to omit from a recording, in addition to the volatile values of every exchange. */
export interface Leaving {
  /** Keys of the JSON body with a number (or null) that depends on the load of the machine. */
  figures?: string[]
  /** Converts the body for the record, for example to omit its values. */
  body?: (text: string) => string
}

/** Sends requests and records them with their responses, as text without volatile values. */
export class Recorder {
  readonly exchanges: Recorded[] = []
  readonly #normaliser: Normaliser

  constructor(literals: readonly [value: string, name: string][]) {
    this.#normaliser = new Normaliser(literals)
  }

  hide(value: string, name: string): void {
    this.#normaliser.hide(value, name)
  }

  async exchange(title: string, sent: Sent, leaving: Leaving = {}): Promise<Answer> {
    const answer = await send(sent)
    this.note(title, [...this.#request(sent), ...this.#answer(answer, leaving)])
    return answer
  }

  /** Records other traffic, for example the requests to a webhook. */
  note(title: string, lines: readonly string[]): void {
    const before = this.exchanges.filter((exchange) => exchange.title === title).length
    if (before > 0) throw new Error(`two exchanges are titled ${title}`)
    this.exchanges.push({ title, text: `${lines.join('\n')}\n` })
  }

  /** Head and body as lines; values are replaced in order of appearance. */
  message(first: string, headers: readonly string[], body: Buffer, leaving: Leaving = {}): string[] {
    const shown = this.#normaliser.text(first)
    const pairs = headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1] ?? ''] as const] : []))
    const sorted = [...pairs].sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
    const lines = sorted.map(([name, value]) => `${name}: ${this.#header(name.toLowerCase(), value, body)}`)
    return [shown, ...withoutUsual(lines), ...this.#body(body, leaving)]
  }

  #request({ method = 'GET', url, headers = {}, body }: Sent): string[] {
    const lines = Object.entries(headers).map(([name, value]) => `> ${name}: ${this.#header(name, value)}`)
    const bytes = bytesOf(body)
    const text = bytes === undefined ? undefined : this.#normaliser.text(bytes.toString('utf8'))
    const shown = text === undefined || text.length <= shownMaxChars ? text : `(${bytes?.byteLength} bytes)`
    const first = `> ${method} ${this.#normaliser.text(url)}`
    return [first, ...lines, ...(shown === undefined ? [] : [`> ${shown.replaceAll('\n', '\n> ')}`])]
  }

  #answer(answer: Answer, leaving: Leaving): string[] {
    const first = `HTTP/1.1 ${answer.status} ${answer.statusText}`
    return this.message(first, answer.headers, answer.body, leaving)
  }

  #header(name: string, sent: string, body?: Buffer): string {
    let value = sent
    if (name === 'content-length' && body !== undefined && Number(value) === body.byteLength)
      return '<length>'
    if (name === 'x-request-id' && /^[\da-f-]{36}$/.test(value)) return '<uuid>'
    if (name === 'x-next-cursor' && value.length >= 30) return '<cursor>'
    if (name === 'set-cookie') value = value.replace(/(?<=\.sig=)[\w-]{27}/, '<signature>')
    if (name === 'authorization' && body === undefined)
      value = this.#normaliser.text(value).replace(/^Basic [^<]+/, 'Basic <credentials>')
    if (name === 'etag' || name === 'if-none-match') return value.replace(/"[^"]+"/, '"<etag>"')
    if (/^x-ratelimit-(remaining|reset)$|^retry-after$/.test(name) && /^\d+$/.test(value)) return '<integer>'
    if (/^(x-)?payment-(required|response|signature)$|^x-payment$/.test(name)) {
      const text = Buffer.from(value, 'base64').toString('utf8')
      if (text.startsWith('{')) return `base64 of ${this.#normaliser.text(text)}`
    }
    if (name === 'x-did-timestamp') return value.replace(/^\d{10}$/, '<seconds>')
    return this.#normaliser.text(value)
  }

  #body(body: Buffer, { figures = [], body: show = (text) => text }: Leaving): string[] {
    if (body.byteLength === 0) return []
    const text = body.toString('utf8')
    if (!Buffer.from(text).equals(body)) return ['', `(${body.byteLength} bytes that are not UTF-8)`]
    const end = text.endsWith('\n') ? ['(ends with a line break)'] : []
    let shown = this.#normaliser.text(show(text).replace(/\n$/, ''))
    for (const key of figures) shown = shown.replaceAll(figure(key), '$1:<figure>')
    return ['', shown, ...end]
  }
}

/** Headers of almost every response; one line replaces them if all are present. */
const usual = [
  'Connection: keep-alive',
  "content-security-policy: default-src 'none'; frame-ancestors 'none'",
  'Keep-Alive: timeout=72',
  'referrer-policy: no-referrer',
  'x-content-type-options: nosniff',
  'x-request-id: <uuid>',
]

function withoutUsual(lines: readonly string[]): readonly string[] {
  if (!usual.every((line) => lines.filter((other) => other === line).length === 1)) return lines
  return [...lines.filter((line) => !usual.includes(line)), '(the usual headers)']
}

const figure = (key: string) => new RegExp(`("${key}"):(?:null|-?[\\d.]+(?:e-?\\d+)?)`, 'g')
