import type { HandlerContext } from '@parley/agent'

/** The value of `ans`: the result of the referenced task, or of the latest task of the conversation. */
export function lastAnswer({ references, context }: Pick<HandlerContext, 'references' | 'context'>): {
  ans?: string
} {
  for (const task of [...context.history, ...references].reverse()) {
    for (const part of task.artifacts.flatMap(({ parts }) => parts).reverse()) {
      const formatted = part.kind === 'data' ? part.data['formatted'] : undefined
      if (typeof formatted === 'string' && formatted.length <= 1000) return { ans: formatted }
    }
  }
  return {}
}
