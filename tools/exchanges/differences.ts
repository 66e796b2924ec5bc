/** An exchange that differs from the record, with the different lines. */
export interface Difference {
  title: string
  text: string
}

/** Number of characters shown on each side of the first difference. */
const around = 160

/** Compares two recordings of one area, exchange by exchange. */
export function differences(area: string, recorded: string, now: string): Difference[] {
  const [before, after] = [exchangesOf(recorded), exchangesOf(now)]
  const titles = new Set([...before.keys(), ...after.keys()])
  return [...titles].flatMap((title) => {
    const [was, is] = [before.get(title), after.get(title)]
    if (was === is) return []
    const name = `${area}: ${title}`
    if (was === undefined) return { title: name, text: `${name}\n  is not in the record` }
    if (is === undefined) return { title: name, text: `${name}\n  was not sent` }
    return { title: name, text: [name, ...linesThatDiffer(was, is)].join('\n') }
  })
}

function exchangesOf(text: string): Map<string, string> {
  const parts = text.split(/^=== /m).slice(1)
  return new Map(
    parts.map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1).trimEnd()]),
  )
}

function linesThatDiffer(was: string, is: string): string[] {
  const [before, after] = [was.split('\n'), is.split('\n')]
  const gone = before.filter((line) => !after.includes(line))
  const added = after.filter((line) => !before.includes(line))
  if (gone.length === 0 && added.length === 0) return ['  the same lines in another order']
  return Array.from({ length: Math.max(gone.length, added.length) }, (_, i) =>
    pairOf(gone[i], added[i]),
  ).flat()
}

function pairOf(was: string | undefined, is: string | undefined): string[] {
  const at = firstDifference(was ?? '', is ?? '')
  const shown = (sign: string, line: string | undefined) =>
    line === undefined ? [] : [`  ${sign} ${excerpt(line, at)}`]
  return [...shown('-', was), ...shown('+', is)]
}

function firstDifference(a: string, b: string): number {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}

function excerpt(line: string, at: number): string {
  const from = Math.max(0, at - around)
  const to = at + around
  return `${from > 0 ? '…' : ''}${line.slice(from, to)}${to < line.length ? '…' : ''}`
}
