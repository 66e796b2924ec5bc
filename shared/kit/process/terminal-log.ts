import { createRequire } from 'node:module'
import type { DestinationStream } from 'pino'
import type { PrettyOptions } from 'pino-pretty'

type Fields = Record<string, unknown>

// `pino-pretty` is loaded for the first line, because most processes log JSON and never need it.
const require = createRequire(import.meta.url)
let format: ((fields: Fields) => string) | undefined

/** Formats a line of a JSON log for a terminal: time, level, name, message and fields on one line. */
export function terminalLine(line: string): string {
  const fields = fieldsOf(line)
  if (fields === undefined) return `${line.replace(/\p{Cc}+/gu, '')}\n`
  format ??= makeFormat()
  return format(fields['audit'] === true ? asSentence(fields) : fields)
}

/** A pino destination that writes synchronously, so that lines keep their order among other output. */
export function terminalDestination(stderr: NodeJS.WritableStream): DestinationStream {
  return { write: (line) => void stderr.write(terminalLine(line)) }
}

function makeFormat(): (fields: Fields) => string {
  const { prettyFactory }: { prettyFactory: (options: PrettyOptions) => (fields: Fields) => string } =
    require('pino-pretty')
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
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

/** Formats a line of `Audit`. */
function asSentence({ who, action, target, allowed, reason, ...rest }: Fields): Fields {
  const decision = [action, target, allowed === true ? 'allowed' : 'refused']
  const why = typeof reason === 'string' ? ` (${reason})` : ''
  const subject = typeof who === 'string' ? `${who}: ` : ''
  delete rest['audit']
  return { ...rest, msg: `${subject}${decision.filter((text) => typeof text === 'string').join(' ')}${why}` }
}
