import { z } from 'zod'

const wholeNumber = (fallback: number, least: number, most: number) => {
  const error = `must be a whole number from ${least} to ${most}`
  return z.coerce
    .number({ error })
    .int({ error })
    .min(least, { error })
    .max(most, { error })
    .default(fallback)
}

/** The names must match `settings.json`, which the supervisor reads. A test compares them. */
export const settingsSchema = z.object({
  OPENAI_BASE_URL: z.url({
    protocol: /^https?$/,
    error: ({ input }) => (input === undefined ? 'is missing' : 'must be an http or https URL'),
  }),
  OPENAI_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable characters without spaces')
    .optional(),
  OPENAI_MODEL: z.string({ error: 'is missing' }).trim().min(1, 'is missing').max(200, 'is too long'),
  OPENAI_SYSTEM_PROMPT: z
    .string()
    .max(20_000, 'must have at most 20000 characters')
    .default('You are a helpful assistant. Answer clearly and briefly, in the language of the question.'),
  OPENAI_TIMEOUT_MS: wholeNumber(60_000, 100, 600_000),
  OPENAI_HISTORY_CHARACTERS: wholeNumber(48_000, 1_000, 2_000_000),
})

export interface AssistantSettings {
  baseUrl: string
  apiKey: string | undefined
  model: string
  systemPrompt: string
  /** Maximum time without data from the endpoint, in milliseconds. */
  timeoutMs: number
  /** Maximum length of the conversation sent to the model, in characters. */
  historyCharacters: number
}

/** @throws Error with one sentence per fault, without the values of the settings */
export function readSettings(env: Record<string, string | undefined>): AssistantSettings {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const parsed = settingsSchema.safeParse(given)
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${String(path[0])} ${message}.`)
    throw new Error(faults.join('\n'))
  }
  const values = parsed.data
  return {
    baseUrl: values.OPENAI_BASE_URL.replace(/\/+$/, ''),
    apiKey: values.OPENAI_API_KEY,
    model: values.OPENAI_MODEL,
    systemPrompt: values.OPENAI_SYSTEM_PROMPT,
    timeoutMs: values.OPENAI_TIMEOUT_MS,
    historyCharacters: values.OPENAI_HISTORY_CHARACTERS,
  }
}
