import { delimiters, fieldsOf } from './delimiter.ts'

export interface TextWithCsv {
  /** The text around the table. */
  question: string
  csv?: string
}

const fence = /```[a-z]*[ \t]*\r?\n([\s\S]*?)\r?\n?```/i

/** Separates a table from the question around it. The table is the longest run of lines with the same shape. */
export function splitText(text: string): TextWithCsv {
  const fenced = fence.exec(text)
  if (fenced?.[1]?.includes('\n')) {
    return { question: text.replace(fenced[0], ' ').trim(), csv: fenced[1] }
  }
  const lines = text.split(/\r?\n/)
  const run = longestTable(lines)
  if (!run) return { question: text.trim() }
  const question = [...lines.slice(0, run.from), ...lines.slice(run.to)].join('\n').trim()
  return { question, csv: withoutFrame(lines.slice(run.from, run.to)).join('\n') }
}

/** Removes the frame of a Markdown table: the pipes at both ends of each row and the dashes below the header. */
function withoutFrame(lines: string[]): string[] {
  if (!lines.every((line) => /^\s*\|.*\|\s*$/.test(line))) return lines
  const rows = lines.filter((line) => !/^[\s|:-]+$/.test(line))
  return rows.map((line) => line.trim().slice(1, -1))
}

interface Run {
  from: number
  to: number
}

function longestTable(lines: string[]): Run | undefined {
  const runs = [...delimiters.flatMap((sign) => runsOf(lines, sign)), ...singleColumnRuns(lines)]
  return runs.sort((a, b) => b.to - b.from - (a.to - a.from))[0]
}

function runsOf(lines: string[], delimiter: string): Run[] {
  const counts = lines.map((line) => (line.trim() ? fieldsOf(line, delimiter) : 0))
  return runsWhere(lines.length, (at, from) => (counts[at] ?? 0) > 1 && counts[at] === counts[from])
    .map(({ from, to }) => ({ from: isSentence(lines[from] ?? '') ? from + 1 : from, to }))
    .filter(({ from, to }) => to - from >= 2 && !lines.slice(from, to).every(isSentence))
}

/** Reads a column of at least three numbers, with or without a header. */
function singleColumnRuns(lines: string[]): Run[] {
  return runsWhere(lines.length, (at) => /^\s*[-+]?[\d.,]+\s*$/.test(lines[at] ?? ''))
    .filter(({ from, to }) => to - from >= 3)
    .map(({ from, to }) => {
      const named = from > 0 && /^\s*[\p{L}_][\p{L}\w ]{0,40}\s*$/u.test(lines[from - 1] ?? '')
      return { from: named ? from - 1 : from, to }
    })
}

function runsWhere(length: number, belongs: (at: number, from: number) => boolean): Run[] {
  const runs: Run[] = []
  for (let from = 0; from < length; ) {
    let to = from
    while (to < length && belongs(to, from)) to += 1
    if (to > from) runs.push({ from, to })
    from = Math.max(to, from + 1)
  }
  return runs
}

/** Maximum length examined to recognize a sentence, because the time to match two words is quadratic in it. */
const sentenceMaxChars = 500

/** Whether a line with a comma is a sentence rather than a row, for example "Hello, what stands out?" */
function isSentence(line: string): boolean {
  const start = line.slice(0, sentenceMaxChars)
  return /[?:!.]$/.test(line.trimEnd().slice(-1)) && (/\p{L}{2,} \p{L}{2,}/u.test(start) || !/\d/.test(start))
}
