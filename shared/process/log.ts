import { type DestinationStream, type Logger, pino } from 'pino'

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

/** One JSON line per event; pretty on a terminal. Secrets are cut out wherever they stand as a field. */
export function makeLog(options: { level: string; name: string; destination?: DestinationStream }): Log {
  const settings = {
    name: options.name,
    level: options.level,
    base: { name: options.name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secrets.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: '[cut]' },
  }
  if (options.destination !== undefined) return pino(settings, options.destination)
  if (process.stderr.isTTY) {
    return pino({ ...settings, transport: { target: 'pino-pretty', options: { destination: 2 } } })
  }
  return pino(settings, pino.destination({ fd: 2, sync: true }))
}
