import type { HandlerContext } from '@parley/agent'
import { toNotation } from './notation.ts'

/** Maximum length of an expression; people do not write longer ones. */
export const expressionMaxChars = 4000
const precisionMax = 64

export interface Asked {
  expression: string
  /** Significant digits of the answer, 1 to 64. */
  precision?: number
}

/** Thrown for a request that cannot be calculated. The message explains how to rephrase it. */
export class ExpressionFault extends Error {}

/** The expression in a message: its data part `{expression, precision?}`, or its text without surrounding words. */
export function expressionFrom(text: string, data: HandlerContext['data']): Asked {
  const given = data['expression']
  if (given !== undefined && typeof given !== 'string') {
    throw new ExpressionFault('`expression` must be a text, for example `{"expression": "2 + 2"}`.')
  }
  const source = given ?? text
  if (source.length > expressionMaxChars) {
    throw new ExpressionFault(
      `The expression is longer than ${expressionMaxChars} characters. Please send a shorter one.`,
    )
  }
  const expression = given?.trim() ?? withoutWords(source)
  if (!expression) {
    throw new ExpressionFault(
      'Which expression shall I calculate? For example `2 + 2`, `12 inch to cm` or `det([1, 2; 3, 4])`.',
    )
  }
  return { expression, ...precisionFrom(data['precision']) }
}

function precisionFrom(value: unknown): { precision?: number } {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > precisionMax) {
    throw new ExpressionFault(
      `\`precision\` must be a whole number from 1 to ${precisionMax}: the significant digits.`,
    )
  }
  return { precision: value }
}

const fence = /```[a-z]*\s*\n?([\s\S]*?)```/i

/** Phrases that may precede an expression, even several in a row ("please tell me what is"). */
const leading = [
  /^(?:hi|hello|hey|please|pls|ok|okay|so|now|then|and)\b[\s,:!]*/i,
  /^(?:can|could|would|will) you (?:please )?/i,
  /^i (?:want|need|would like|'d like) (?:to (?:know|have|get) )?/i,
  /^(?:tell|give|show) me\b[\s:]*/i,
  /^(?:what(?:'s|’s|s| is| are| does| do| would| will be| equals?)|how much (?:is|are|does|do|would)|how (?:long|far|big|heavy|hot|cold) is)\b[\s:]*/i,
  /^(?:calculate|compute|evaluate|solve|work out|figure out|find(?: out)?|determine|convert|change|turn|do the math(?: for)?)\b(?!\()[\s:]*/i,
  /^(?:the )?(?:result|value|answer|solution|outcome) (?:of|to|for)\b[\s:]*/i,
  /^(?:the expression|expression|math|maths|q)\s*:\s*/i,
]
/** Phrases and punctuation that may follow an expression, even several in a row ("= ? please"). */
const ending = /(?:=|\bplease|\bequals?(?:\s+what)?|\bfor me|\bthanks?(?: you)?)$/i
const endingMaxChars = 60
const marks = new Set(' \t\n\r\u00a0.,!?')

/** `what is 2 + 2?` → `2 + 2`. Lines are handled separately, so that a small program may follow a question. */
function withoutWords(text: string): string {
  const inside = fence.exec(text)?.[1] ?? text
  return inside
    .replaceAll('`', '')
    .split(/\r?\n/)
    .map((line) => toNotation(strip(line)))
    .filter(Boolean)
    .join('\n')
}

function strip(line: string): string {
  let rest = line.trim()
  for (let before = ''; before !== rest; ) {
    before = rest
    for (const phrase of leading) rest = rest.replace(phrase, '')
  }
  return withoutEnding(rest)
    .replace(/(?<=[\w)\]%])\.$/, '')
    .replace(/:$/, '')
    .trim()
}

/** Removes trailing phrases. Scans backwards, so that the work is linear in the length. */
function withoutEnding(text: string): string {
  for (let rest = text; ; ) {
    let end = rest.length
    while (end > 0 && marks.has(rest.charAt(end - 1))) end -= 1
    const found = ending.exec(rest.slice(Math.max(0, end - endingMaxChars), end))
    if (found) {
      rest = rest.slice(0, end - found[0].length)
      continue
    }
    const question = rest.indexOf('?', end)
    return (question === -1 ? rest : rest.slice(0, question)).trimEnd()
  }
}
