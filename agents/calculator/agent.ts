import { defineAgent, type HandlerContext, type Output } from '@parley/agent'
import { calculate, concurrentCalculations } from './calculation.ts'
import { continueExpression } from './continue-expression.ts'
import { ExpressionFault, expressionFrom } from './expression.ts'
import { lastAnswer } from './last-answer.ts'
import type { NotCalculated } from './outcome.ts'
import { explain, isBeyondBounds, isSentence, reply } from './reply.ts'

/** The skills are in `skills/`, one Markdown file each. */
export default defineAgent({
  name: 'calculator',
  description:
    'Calculates exactly what is asked: arithmetic, percentages, powers and roots, trigonometry, physical units and ' +
    'their conversion, matrices and small programs with variables and functions. Understands plain questions such as ' +
    '"what is 15% of 80?" and gives the result as text and as data.',
  // Each calculation occupies one process; more in parallel would only share the same cores.
  concurrency: concurrentCalculations,
  deadlineMs: 60_000,
  handle,
})

async function* handle(context: HandlerContext): AsyncGenerator<Output> {
  try {
    const asked = continueExpression(expressionFrom(context.text, context.data), context.history)
    const outcome = await calculate({ ...asked, ...lastAnswer(context) }, context.signal)
    if (outcome.ok) yield* reply(asked.expression, outcome)
    else yield refusalOf(asked.expression, outcome, context)
  } catch (error) {
    if (!(error instanceof ExpressionFault)) throw error
    yield context.ask(error.message)
  }
}

function refusalOf(expression: string, outcome: NotCalculated, context: HandlerContext): Output {
  const reason = explain(expression, outcome)
  if (isBeyondBounds(outcome.fault)) return context.decline(reason)
  const { missing } = outcome
  const isAsked = missing !== undefined && !isSentence(expression, missing)
  return context.ask(reason, { expression, ...(isAsked && { missing }) })
}
