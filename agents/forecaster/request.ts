import type { HandlerContext } from '../../shared/handler/define-agent.ts'

export interface Request {
  csv: string
  /** Steps to look ahead; undefined: a season, at least six. */
  horizon: number | undefined
  column: string | undefined
}

const horizonMax = 60

type Said = Pick<HandlerContext, 'text' | 'files' | 'input'>

/** The table, as data, file or text, and what is asked about it. Undefined when there is no table. */
export function readRequest({ text, files, input }: Said): Request | undefined {
  const given = (input ?? {}) as { csv?: unknown; horizon?: unknown; column?: unknown }
  const file = files.find(
    ({ name, mimeType }) =>
      /csv|tab-separated|plain/.test(mimeType ?? '') || /\.(csv|tsv)$/i.test(name ?? ''),
  )
  const lines = text.split('\n').filter((line) => /^[^,;\t]+[,;\t]/.test(line))
  const csv =
    typeof given.csv === 'string'
      ? given.csv
      : file !== undefined
        ? Buffer.from(file.bytes).toString('utf8')
        : lines.length > 2
          ? lines.join('\n')
          : undefined
  if (csv === undefined) return undefined
  const column =
    typeof given.column === 'string'
      ? given.column
      : /\bcolumn\s+"?([\w -]{1,60}?)"?(?:[.,;!?]|$)/im.exec(text)?.[1]
  return { csv, horizon: horizonOf(given.horizon, text), column }
}

/** `horizon: 6`, or "the next 6 months", "12 steps ahead". */
function horizonOf(given: unknown, text: string): number | undefined {
  const said = /\b(?:next\s+(\d{1,3})|(\d{1,3})\s+\w+\s+ahead)\b/i.exec(text)
  const wanted = typeof given === 'number' ? given : Number(said?.[1] ?? said?.[2] ?? Number.NaN)
  return Number.isInteger(wanted) && wanted >= 1 ? Math.min(wanted, horizonMax) : undefined
}

/** Never further than half of what is known: beyond that a forecast is a guess. */
export function horizonFor(asked: number | undefined, season: number, known: number): number {
  return Math.max(1, Math.min(asked ?? Math.max(6, Math.min(season, 12)), Math.floor(known / 2)))
}
