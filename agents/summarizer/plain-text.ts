/**
 * Extracts the paragraphs from plain text or Markdown, without headings, code, tables, images or markup. Each list entry is
 * a paragraph; the lines of a paragraph are joined.
 */
export function* paragraphsOf(text: string): Generator<string> {
  let lines: string[] = []
  let fence: string | undefined
  let inFrontMatter = false
  let first = true
  for (const line of linesOf(text)) {
    if (first && line === '---') inFrontMatter = true
    else if (inFrontMatter) inFrontMatter = line !== '---'
    else if (fence !== undefined) fence = line.trimStart().startsWith(fence) ? undefined : fence
    else {
      fence = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1]
      const starts = listMarker.test(line)
      if (fence !== undefined || isNoProse(line) || starts) {
        if (lines.length > 0) yield joined(lines)
        lines = starts ? [line.replace(listMarker, '')] : []
      } else lines.push(line)
    }
    first = false
  }
  if (lines.length > 0) yield joined(lines)
}

// Only numbers up to 99 are list markers: a line may start with a year and a full stop.
const listMarker = /^\s*(?:[-*+•–]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?/

const isNoProse = (line: string): boolean =>
  line.trim() === '' ||
  /^\s{0,3}#{1,6}\s/.test(line) ||
  /^\s*\|.*\|\s*$/.test(line) ||
  /^[-=_*:|+\s]{3,}$/.test(line)

function* linesOf(text: string): Generator<string> {
  let start = 0
  while (start <= text.length) {
    const found = text.indexOf('\n', start)
    const end = found === -1 ? text.length : found
    yield text.slice(start, end).trimEnd()
    start = end + 1
  }
}

/** Longer paragraphs keep their markup, because the search looks ahead from every bracket. */
const longestWithMarkup = 50_000

function joined(lines: string[]): string {
  const text = lines.map((line) => line.replace(/^\s{0,3}(?:>\s?)+/, '').trim()).join(' ')
  return (text.length > longestWithMarkup ? text : withoutMarkup(text)).replace(/\s+/gu, ' ').trim()
}

function withoutMarkup(text: string): string {
  return text
    .replace(/!\[[^\]\n]{0,300}\]\([^)\s]{0,2000}(?:\s"[^"]{0,300}")?\)/g, '')
    .replace(/\[([^\]\n]{1,300})\]\([^)\s]{0,2000}(?:\s"[^"]{0,300}")?\)/g, '$1')
    .replace(/(\*\*|__)(?=\S)([^*_]{1,500}?)(?<=\S)\1/g, '$2')
    .replace(/(?<![\p{L}\p{N}*])\*(?=\S)([^*]{1,500}?)(?<=\S)\*(?![\p{L}\p{N}*])/gu, '$1')
    .replace(/`([^`]{1,300})`/g, '$1')
}
