/** Agents do not report the tokens of a task, and an estimate would look like a measurement (spec/openai.md#usage). */
export const noUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } as const

export const noResponseUsage = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
} as const
