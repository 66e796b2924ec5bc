import type { HandlerContext } from '@parley/agent'
import { type Asked, expressionMaxChars } from './expression.ts'

type Message = HandlerContext['history'][number]

interface Question {
  expression: string
  missing: string
}

const quantity = /^-?[\d.]+(?:e[+-]?\d+)?\s*[A-Za-z%°][\w/^* ]*$|^-?[\d.]+(?:e[+-]?\d+)?$/i
const identifier = /^[\p{L}_$][\p{L}\w$]*$/u
const assignment = /^([\p{L}_$][\p{L}\w$]*)\s*=(?!=)[^\n;]*$/u
const identifierMaxChars = 100

/** Completes the previous expression with an answer to "what is x?" (`5`, `x = 5`); other messages are new expressions. */
export function continueExpression(answer: Asked, history: HandlerContext['history']): Asked {
  const question = questionOf(history)
  if (!question) return answer
  const { missing, expression } = question
  const given = answer.expression.trim()
  const value = quantity.test(given) ? `${missing} = ${given}` : given
  if (assignment.exec(value)?.[1] !== missing) return answer
  const whole = `${value}\n${expression}`
  return whole.length > expressionMaxChars ? answer : { ...answer, expression: whole }
}

/** Finds our question between two messages of the caller. A caller may use any role, so the content is untrusted. */
function questionOf(history: Message[]): Question | undefined {
  const message = history.length > 2 ? history.at(-2) : undefined
  if (message?.role !== 'assistant' || message.parts.length !== 2) return undefined
  const [text, asked] = message.parts
  if (text?.kind !== 'text' || asked?.kind !== 'data' || Object.keys(asked.data).length !== 2)
    return undefined
  const { missing, expression } = asked.data
  if (typeof missing !== 'string' || typeof expression !== 'string') return undefined
  if (missing.length > identifierMaxChars || !identifier.test(missing)) return undefined
  return expression.length > expressionMaxChars ? undefined : { missing, expression }
}
