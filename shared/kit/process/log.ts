import { type DestinationStream, type LogFn, type Logger, type LoggerOptions, pino } from 'pino'
import { outageOf } from './outage.ts'
import { terminalDestination } from './terminal-log.ts'

export type Log = Logger

const secrets = [
  'authorization',
  'token',
  'client_secret',
  'clientSecret',
  'password',
  'secret',
  'seed',
  'privateKey',
  'x-payment',
  'cookie',
]

/** On the log of a process that stops, and so on all that were made of it. */
const stopping = Symbol('stopping')

/** From now on nobody can do anything about what is away: errors that come of it are warnings. */
export function tellStop(log: Pick<Log, 'error'>): void {
  Object.assign(log, { [stopping]: true })
}

/** That something is away is no fault that a stack would lead to: it is told in one line, whoever tells it. */
function withoutStackOfOutage(
  this: Logger & { [stopping]?: boolean },
  given: Parameters<LogFn>,
  write: LogFn,
  level: number,
): void {
  const [fields, ...rest] = given as unknown as [Record<string, unknown> | string, ...string[]]
  const outage =
    typeof fields === 'object' && fields?.['err'] !== undefined ? outageOf(fields['err']) : undefined
  if (outage === undefined) return write.apply(this, given)
  const { err: _, ...others } = fields as Record<string, unknown>
  const told = { ...others, reason: outage }
  if (this[stopping] === true && level === pino.levels.values['error']) this.warn(told, ...rest)
  else write.apply(this, [told, ...rest] as unknown as Parameters<LogFn>)
}

/** One JSON line per event; on a terminal one line for people. Secrets are cut out wherever they stand as a field. */
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
