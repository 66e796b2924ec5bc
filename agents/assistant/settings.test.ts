import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readSettings, settingsSchema } from './settings.ts'

const least = { OPENAI_BASE_URL: 'http://127.0.0.1:1234/v1/', OPENAI_MODEL: 'small' }

test('requires only the address and the model, because all other settings have defaults', () => {
  expect(readSettings({ ...least, OPENAI_API_KEY: '' })).toMatchObject({
    baseUrl: 'http://127.0.0.1:1234/v1',
    model: 'small',
    apiKey: undefined,
    timeoutMs: 60_000,
    historyCharacters: 48_000,
  })
})

test.each([
  [{ OPENAI_BASE_URL: undefined }, 'OPENAI_BASE_URL is missing.'],
  [{ OPENAI_BASE_URL: 'nonsense' }, 'OPENAI_BASE_URL must be an http or https URL.'],
  [{ OPENAI_BASE_URL: 'file:///etc/passwd' }, 'OPENAI_BASE_URL must be an http or https URL.'],
  [{ OPENAI_MODEL: ' ' }, 'OPENAI_MODEL is missing.'],
  [{ OPENAI_API_KEY: 'sk-12\n34' }, 'OPENAI_API_KEY must be printable characters without spaces.'],
  [{ OPENAI_TIMEOUT_MS: 'soon' }, 'OPENAI_TIMEOUT_MS must be a whole number from 100 to 600000.'],
  [{ OPENAI_TIMEOUT_MS: '5' }, 'OPENAI_TIMEOUT_MS must be a whole number from 100 to 600000.'],
  [
    { OPENAI_HISTORY_CHARACTERS: '1.5' },
    'OPENAI_HISTORY_CHARACTERS must be a whole number from 1000 to 2000000.',
  ],
])('rejects %j in one sentence', (fault, sentence) => {
  expect(() => readSettings({ ...least, ...fault })).toThrow(new Error(sentence))
})

test('reports every fault', () => {
  expect(() => readSettings({})).toThrow('OPENAI_BASE_URL is missing.\nOPENAI_MODEL is missing.')
})

test('settings.json lists the same settings and describes each', () => {
  const manifest = JSON.parse(readFileSync(new URL('settings.json', import.meta.url), 'utf8')) as {
    env: string[]
    required: string[]
    secret: string[]
    meaning: Record<string, string>
  }
  const names = Object.keys(settingsSchema.shape).sort()
  expect(manifest.env.toSorted()).toEqual(names)
  expect(Object.keys(manifest.meaning).sort()).toEqual(names)
  expect(manifest.secret).toEqual(['OPENAI_API_KEY'])
  const required = Object.entries(settingsSchema.shape).filter(
    ([, schema]) => !schema.safeParse(undefined).success,
  )
  expect(manifest.required.toSorted()).toEqual(required.map(([name]) => name).sort())
})
