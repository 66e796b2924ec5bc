import type { HandlerContext } from '../../shared/handler/define-agent.ts'
import type { Asked } from './expression.ts'

const quantity = /^-?[\d.]+(?:e[+-]?\d+)?\s*[A-Za-z%°][\w/^* ]*$|^-?[\d.]+(?:e[+-]?\d+)?$/i

/** An answer to "what is x?" (`5`, `x = 5`) completes the expression that was asked; anything else stands by itself. */
export function continueExpression(answer: Asked, history: HandlerContext['history']): Asked {
  const question = history.findLast((message) => message.role !== 'user')
  const data = question?.parts.find((part) => part.kind === 'data')?.data
  const { missing, expression } = data ?? {}
  if (typeof missing !== 'string' || typeof expression !== 'string') return answer
  const given = answer.expression.trim()
  if (quantity.test(given)) return { ...answer, expression: `${missing} = ${given}\n${expression}` }
  if (new RegExp(`^${missing}\\s*=(?!=)[^\\n;]*$`).test(given))
    return { ...answer, expression: `${given}\n${expression}` }
  return answer
}
