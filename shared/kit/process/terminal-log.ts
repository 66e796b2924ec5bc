import { createRequire } from 'node:module'
import type { DestinationStream } from 'pino'
import type { PrettyOptions } from 'pino-pretty'

type Fields = Record<string, unknown>

// Loaded on the first line: most processes log JSON and never need it.
const require = createRequire(import.meta.url)
let format: ((fields: Fields) => string) | undefined

/** One line of a JSON log as people read it on a terminal: time, level, name, message and the fields, on one line. */
export function terminalLine(line: string): string {
  const fields = fieldsOf(line)
  if (fields === undefined) return `${line.replace(/\p{Cc}+/gu, '')}\n`
  format ??= makeFormat()
  return format(fields['audit'] === true ? asSentence(fields) : fields)
}

/** A destination for pino: each line is written at once, so that it keeps its place among other output. */
export function terminalDestination(stderr: NodeJS.WritableStream): DestinationStream {
  return { write: (line) => void stderr.write(terminalLine(line)) }
}

function makeFormat(): (fields: Fields) => string {
  const { prettyFactory } = require('pino-pretty') as {
    prettyFactory: (options: PrettyOptions) => (fields: Fields) => string
  }
  return prettyFactory({
    colorize: true,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname,agent_pid',
  })
}

function fieldsOf(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Fields)
      : undefined
  } catch {
    return undefined
  }
}

/** See `Audit`. */
function asSentence({ who, action, target, allowed, reason, ...rest }: Fields): Fields {
  const decision = [action, target, allowed === true ? 'allowed' : 'refused']
  const why = typeof reason === 'string' ? ` (${reason})` : ''
  const subject = typeof who === 'string' ? `${who}: ` : ''
  delete rest['audit']
  return { ...rest, msg: `${subject}${decision.filter((text) => typeof text === 'string').join(' ')}${why}` }
}
