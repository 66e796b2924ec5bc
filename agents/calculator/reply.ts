import type { Output } from '@parley/agent'
import { currencies } from './currencies.ts'
import type { Calculated, Fault, NotCalculated } from './outcome.ts'

/** The answer as text and as data. */
export function* reply(expression: string, outcome: Calculated): Generator<Output> {
  const { result, type, formatted, value, unit, steps } = outcome
  yield steps.map(sentence).join('\n')
  yield {
    expression,
    result,
    type,
    formatted,
    ...(value !== undefined && { value }),
    ...(unit && { unit }),
    ...(steps.length > 1 && { steps: steps.map((step) => ({ ...step })) }),
  }
}

function sentence({ expression, formatted }: { expression: string; formatted: string }): string {
  const assigned = /^\s*[A-Za-z_]\w*(?:\(.*?\))?\s*=(?!=)/.exec(expression)
  if (formatted === 'a function') return `${expression} (defined)`
  // `a = 3` already shows its value.
  if (assigned && expression.endsWith(` = ${formatted}`)) return expression
  return `${expression} = ${formatted}`
}

const examples: Partial<Record<Fault, string>> = {
  syntax: 'Write for example `(2 + 3) * 4`, `12 inch to cm` or `det([1, 2; 3, 4])`.',
  mismatch: 'Write for example `5 kg to lb`, `sqrt(2)` or `[1, 2; 3, 4] * [5; 6]`.',
  refused: 'Numbers, units, matrices, functions such as `sqrt`, `sin`, `det` and your own variables are.',
}

/** Whether the expression is valid but exceeds the limits, so that rephrasing does not help. */
export function isBeyondBounds(fault: Fault): boolean {
  return fault === 'time' || fault === 'memory' || fault === 'size'
}

const noRates =
  'exchange rates change daily and are not known here; give me the rate, for example `100 * 0.92`.'

const operators = 'to|in|and|or|not|xor|mod'
const adjacentWords = new RegExp(
  String.raw`\b(?!(?:${operators})\b)[a-z]{2,}\s+(?!(?:${operators})\b)[a-z]{2,}\b`,
  'i',
)
const wordOfSentence =
  /^(?:an?|and|are|can|do|does|for|from|how|if|is|of|the|there|was|what|when|where|which|who|why|with)$/i

/** Whether the text is a sentence rather than an expression, so that asking for the value of a word makes no sense. */
export function isSentence(expression: string, missing: string): boolean {
  return wordOfSentence.test(missing) || adjacentWords.test(expression)
}

/** Explains the error, its position and the correct notation. */
export function explain(expression: string, outcome: NotCalculated): string {
  const shown = `\`${expression.length > 200 ? `${expression.slice(0, 200)}…` : expression}\``
  if (outcome.fault === 'time') return `${shown} takes longer than a calculation may here (5 seconds).`
  if (outcome.fault === 'memory') return `${shown} needs more memory than a calculation may have here.`
  if (outcome.fault === 'size')
    return `${shown} goes beyond what can be calculated here: ${lowerFirst(outcome.detail)}.`
  const [one, other] = new Set(
    (expression.match(/\b[A-Z]{3}\b/g) ?? []).filter((code) => currencies.has(code)),
  )
  if (outcome.fault === 'mismatch' && one !== undefined && other !== undefined)
    return `${shown} needs exchange rates of ${one} and ${other}: ${noRates}`
  if (outcome.missing) {
    const { missing } = outcome
    if (/^[A-Z]{3}$/.test(missing))
      return `I do not know ${missing} in ${shown}. If it is a currency: ${noRates}`
    if (isSentence(expression, missing))
      return `I cannot read ${shown} as a calculation. Write it with numbers and signs, for example \`(2 + 3) * 4\`, \`15% of 80\` or \`12 inch to cm\`.`
    return `${shown} has no value for \`${missing}\`. What is \`${missing}\`? Answer with a value such as \`${missing} = 5\`, or write the whole expression again.`
  }
  const where = outcome.char === undefined ? '' : ` at character ${outcome.char}`
  const example =
    examples[outcome.fault] ?? 'Is it spelled as in `sqrt(2)`, `log(100, 10)` or `mean(1, 2, 3)`?'
  return `I cannot calculate ${shown}: ${detailOf(outcome)}${where}. ${example}`
}

/** Removes internal function and type names from mathjs errors about arguments. */
function detailOf({ detail }: NotCalculated): string {
  return /\bin function \w+ \(expected/.test(detail)
    ? 'its parts cannot be combined in this way'
    : lowerFirst(detail)
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)
