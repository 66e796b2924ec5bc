/** Maximum number of markers or spaces at the start of a line; deeper nesting is not meaningful. */
const mostMarks = 24
const mostSpaces = 200

const marks = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))+/
const mark = /[ \t]*(?:>|[-*+]|\d{1,9}[.)])/g

/** Limits nesting, because the parser reads quotes and lists again for each level, which is quadratic in the depth. */
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
