import type { TaskMetrics } from '@parley/kit/process/metrics'
import type { HandlerContext } from '../../author/context.ts'

/** Further model names are counted as `other`, because handlers choose the names and each one adds a metric series. */
const modelsMax = 50

/** Adds the usage that handlers report to the metric `agent_llm_tokens_total`. */
export function usageCounter(metrics: TaskMetrics, agentId: string): HandlerContext['usage'] {
  const models = new Set<string>()
  return ({ model, inputTokens, outputTokens }) => {
    if (models.size < modelsMax) models.add(model)
    const label = models.has(model) ? model.slice(0, 100) : 'other'
    const count = (direction: string, tokens: number) => {
      if (Number.isFinite(tokens) && tokens > 0)
        metrics.llmTokens.inc({ agent_id: agentId, direction, model: label }, tokens)
    }
    count('input', inputTokens)
    count('output', outputTokens)
  }
}
