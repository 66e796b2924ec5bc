import type { TaskMetrics } from '@parley/kit/process/metrics'
import type { TokenUsage } from '@parley/wire/codecs/parley/metadata'
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

/** Adds up the tokens that one run of a handler reports. */
export class RunUsage {
  #total: TokenUsage | undefined
  readonly #count: HandlerContext['usage']

  /** @param count also receives each report */
  constructor(count: HandlerContext['usage']) {
    this.#count = count
  }

  /** Undefined if the handler has reported nothing. */
  get total(): TokenUsage | undefined {
    return this.#total
  }

  readonly report: HandlerContext['usage'] = (spent) => {
    this.#count(spent)
    const { inputTokens = 0, outputTokens = 0 } = this.#total ?? {}
    this.#total = {
      inputTokens: inputTokens + tokensIn(spent.inputTokens),
      outputTokens: outputTokens + tokensIn(spent.outputTokens),
    }
  }
}

const tokensIn = (tokens: number) => (Number.isFinite(tokens) && tokens > 0 ? Math.round(tokens) : 0)
