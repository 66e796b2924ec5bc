/** More marks than this at the start of a line, or spaces, are left out: deeper than any text that is meant. */
const mostMarks = 24
const mostSpaces = 200

const marks = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))+/
const mark = /[ \t]*(?:>|[-*+]|\d{1,9}[.)])/g

/** Quotations and lists are read anew for each level they stand in: without a bound their depth squares the work. */
export function shallow(markdown: string): string {
  return markdown.split('\n').map(shallowLine).join('\n')
}

function shallowLine(line: string): string {
  const text = line.replace(/^ {201,}/, ' '.repeat(mostSpaces))
  const lead = marks.exec(text)?.[0]
  if (lead === undefined || lead.length <= mostMarks) return text
  const all = lead.match(mark) ?? []
  return all.length <= mostMarks ? text : all.slice(0, mostMarks).join('') + text.slice(lead.length)
}
