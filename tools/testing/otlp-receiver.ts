import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'

/** A span as an exporter sent it. */
export interface ReceivedSpan {
  service: string
  name: string
  kind: number
  traceId: string
  spanId: string
  /** Empty for the first span of a trace. */
  parentSpanId: string
  traceState: string
  /** Nanoseconds since 1970. */
  start: bigint
  end: bigint
  attributes: Record<string, unknown>
  isError: boolean
}

export interface ReceivedLog {
  service: string
  severity: string
  body: unknown
  attributes: Record<string, unknown>
  traceId: string
}

/** A collector of OpenTelemetry in memory, which reads OTLP over HTTP in protobuf. */
export class OtlpReceiver implements AsyncDisposable {
  readonly url: string
  readonly spans: ReceivedSpan[] = []
  readonly logs: ReceivedLog[] = []
  /** The names of the metrics, with the services that sent them. */
  readonly metrics = new Map<string, Set<string>>()
  /** The headers of the newest request. */
  headers: NodeJS.Dict<string | string[]> = {}
  readonly #close: () => Promise<void>

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url
    this.#close = close
  }

  static async start(): Promise<OtlpReceiver> {
    const server = createServer((request, response) => {
      void receiver.#answer(request, response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const receiver: OtlpReceiver = new OtlpReceiver(`http://127.0.0.1:${port}`, async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    })
    return receiver
  }

  /** Resolves with the first value that is not undefined. */
  async until<T>(read: () => T | undefined, withinMs = 100_000): Promise<T> {
    const until = Date.now() + withinMs
    for (;;) {
      const value = read()
      if (value !== undefined) return value
      if (Date.now() > until) throw new Error(`The collector did not receive it. It has:\n${this.tree()}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  /** Returns the spans of a trace as lines, indented below their parents, in order of their start. */
  tree(traceId?: string): string {
    const spans = this.spans.filter((span) => traceId === undefined || span.traceId === traceId)
    const known = new Set(spans.map(({ spanId }) => spanId))
    const lines: string[] = []
    const add = (span: ReceivedSpan, depth: number) => {
      lines.push(`${'  '.repeat(depth)}${span.service}: ${span.name}`)
      for (const child of childrenOf(span.spanId)) add(child, depth + 1)
    }
    const byStart = (a: ReceivedSpan, b: ReceivedSpan) => Number(a.start - b.start)
    const childrenOf = (id: string) => spans.filter((one) => one.parentSpanId === id).toSorted(byStart)
    for (const root of spans.filter(({ parentSpanId }) => !known.has(parentSpanId)).toSorted(byStart))
      add(root, 0)
    return lines.join('\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await buffer(request)
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
    this.headers = request.headers
    this.#receive(request.url ?? '', body)
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  }

  #receive(path: string, bytes: Buffer): void {
    for (const group of messages(bytes, 1)) {
      const service = String(attributesOf(messages(group, 1)[0] ?? Buffer.alloc(0), 1)['service.name'])
      const items = messages(group, 2).flatMap((scope) => messages(scope, 2))
      for (const item of items) {
        if (path === '/v1/traces') this.spans.push(spanOf(service, item))
        if (path === '/v1/logs') this.logs.push(logOf(service, item))
        if (path === '/v1/metrics') this.#count(textIn(item, 1), service)
      }
    }
  }

  #count(name: string, service: string): void {
    const services = this.metrics.get(name) ?? new Set()
    this.metrics.set(name, services.add(service))
  }
}

function spanOf(service: string, span: Buffer): ReceivedSpan {
  const [status] = messages(span, 15)
  return {
    service,
    name: textIn(span, 5),
    kind: Number(numberIn(span, 6)),
    traceId: hexIn(span, 1),
    spanId: hexIn(span, 2),
    parentSpanId: hexIn(span, 4),
    traceState: textIn(span, 3),
    start: numberIn(span, 7),
    end: numberIn(span, 8),
    attributes: attributesOf(span, 9),
    isError: status !== undefined && numberIn(status, 3) === 2n,
  }
}

function logOf(service: string, record: Buffer): ReceivedLog {
  const [body] = messages(record, 5)
  return {
    service,
    severity: textIn(record, 3),
    body: body && valueOf(body),
    attributes: attributesOf(record, 6),
    traceId: hexIn(record, 9),
  }
}

function attributesOf(message: Buffer, field: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(message, field).map((pair) => {
      const [value] = messages(pair, 2)
      return [textIn(pair, 1), value && valueOf(value)]
    }),
  )
}

/** Reads an `AnyValue`: a text, a boolean, an integer, a number or a list. */
function valueOf(value: Buffer): unknown {
  for (const { field, content } of fieldsOf(value)) {
    if (field === 1 && Buffer.isBuffer(content)) return content.toString('utf8')
    if (field === 2) return content === 1n
    if (field === 3 && typeof content === 'bigint') return Number(BigInt.asIntN(64, content))
    if (field === 4 && typeof content === 'bigint') {
      const bits = Buffer.alloc(8)
      bits.writeBigUInt64LE(content)
      return bits.readDoubleLE()
    }
    if (field === 5 && Buffer.isBuffer(content)) return messages(content, 1).map(valueOf)
  }
  return undefined
}

const messages = (message: Buffer, field: number) =>
  fieldsOf(message).flatMap((one) =>
    one.field === field && Buffer.isBuffer(one.content) ? [one.content] : [],
  )
const textIn = (message: Buffer, field: number) => messages(message, field)[0]?.toString('utf8') ?? ''
const hexIn = (message: Buffer, field: number) => messages(message, field)[0]?.toString('hex') ?? ''

function numberIn(message: Buffer, field: number): bigint {
  const found = fieldsOf(message).find((one) => one.field === field)?.content
  return typeof found === 'bigint' ? found : 0n
}

interface Field {
  field: number
  /** A number, or the bytes of a text, a list or a message. */
  content: bigint | Buffer
}

/** Reads the fields of a message in the wire format of Protocol Buffers. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => message.subarray(at, (at += length))
  while (at < message.length) {
    const key = Number(varint())
    const [field, type] = [key >> 3, key & 7]
    if (type === 0) fields.push({ field, content: varint() })
    else if (type === 1) fields.push({ field, content: take(8).readBigUInt64LE() })
    else if (type === 2) fields.push({ field, content: take(Number(varint())) })
    else fields.push({ field, content: BigInt(take(4).readUInt32LE()) })
  }
  return fields
}
