import { type DestinationStream, type LogFn, type Logger, type LoggerOptions, pino } from 'pino'
import { exportLogLine } from '../telemetry/telemetry.ts'
import { tracing } from '../telemetry/tracing.ts'
import { outageOf } from './outage.ts'
import { terminalDestination } from './terminal-log.ts'

export type Log = Logger

const secrets = [
  'authorization',
  'token',
  'credentials',
  'client_secret',
  'clientSecret',
  'password',
  'secret',
  'seed',
  'privateKey',
  'x-payment',
  'cookie',
]

/** Set on the logger of a stopping process; child loggers inherit it. */
const stopping = Symbol('stopping')

/** Marks the process as stopping: errors caused by outages are then logged as warnings. */
export function markStopping(log: Pick<Log, 'error'>): void {
  Object.assign(log, { [stopping]: true })
}

/** Logs an outage as a single line, because its stack would not help to find a bug. */
function withoutStackOfOutage(
  this: Logger & { [stopping]?: boolean },
  args: Parameters<LogFn>,
  write: LogFn,
  level: number,
): void {
  const [fields, message, ...values]: unknown[] = args
  const error = typeof fields === 'object' && fields !== null && 'err' in fields ? fields.err : undefined
  const outage = error === undefined ? undefined : outageOf(error)
  if (outage === undefined) return write.apply(this, args)
  const { err: _, ...others }: Record<string, unknown> = { ...Object(fields) }
  const entry = { ...others, reason: outage }
  const text = typeof message === 'string' ? message : undefined
  if (this[stopping] === true && level === pino.levels.values['error']) this.warn(entry, text, ...values)
  else write.call(this, entry, text, ...values)
}

/** Each line names the trace and the step that it belongs to. */
function currentIds(): Record<string, string> {
  const span = tracing()?.current()
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId }
}

/** Creates a logger that writes JSON lines, or readable lines on a terminal. Fields with secrets are redacted. */
export function makeLog(options: { level: string; name: string; destination?: DestinationStream }): Log {
  const settings: LoggerOptions = {
    name: options.name,
    level: options.level,
    base: { name: options.name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secrets.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: '[cut]' },
    hooks: { logMethod: withoutStackOfOutage, streamWrite: exportLogLine },
    mixin: currentIds,
  }
  if (options.destination !== undefined) return pino(settings, options.destination)
  if (process.stderr.isTTY) return pino(settings, terminalDestination(process.stderr))
  return pino(settings, pino.destination({ fd: 2, sync: true }))
}

/** How long lines of a frequent logger may wait, and the length at which they are written earlier. */
const [batchMs, batchMaxChars] = [50, 16 * 1024]

/** Writes lines together, because a system call for each line costs more than the line. */
class LineBatch implements DestinationStream {
  readonly #to: DestinationStream
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor(to: DestinationStream) {
    this.#to = to
    process.once('exit', () => this.#flush())
  }

  write(line: string): void {
    this.#lines += line
    if (this.#lines.length >= batchMaxChars) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), batchMs).unref()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#lines
    this.#lines = ''
    if (lines !== '') this.#to.write(lines)
  }
}

const batches = new WeakMap<DestinationStream, LineBatch>()

/**
 * Returns a logger for lines that every task causes. Nothing is redacted, so that fields must contain no secrets. Lines are
 * written up to 50 ms later, and a killed process loses them.
 */
export function frequentLog(log: Log): Log {
  const child = log.child({}, { redact: [] })
  const { streamSym } = pino.symbols
  const stream: unknown = Reflect.get(child, streamSym)
  // Other destinations, such as a terminal, take one line at a time.
  if (!isFile(stream)) return child
  const batch = batches.get(stream) ?? new LineBatch(stream)
  batches.set(stream, batch)
  return Object.assign(child, { [streamSym]: batch })
}

function isFile(stream: unknown): stream is DestinationStream {
  return typeof stream === 'object' && stream !== null && 'fd' in stream && 'flushSync' in stream
}
