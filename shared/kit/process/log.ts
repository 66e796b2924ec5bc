import { type DestinationStream, type LogFn, type Logger, type LoggerOptions, pino } from 'pino'
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

/** Creates a logger that writes JSON lines, or readable lines on a terminal. Fields with secrets are redacted. */
export function makeLog(options: { level: string; name: string; destination?: DestinationStream }): Log {
  const settings: LoggerOptions = {
    name: options.name,
    level: options.level,
    base: { name: options.name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secrets.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: '[cut]' },
    hooks: { logMethod: withoutStackOfOutage },
  }
  if (options.destination !== undefined) return pino(settings, options.destination)
  if (process.stderr.isTTY) return pino(settings, terminalDestination(process.stderr))
  return pino(settings, pino.destination({ fd: 2, sync: true }))
}
