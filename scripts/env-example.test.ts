import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { agentSettings, commonSettings, gatewaySettings, readSettings } from '../shared/process/settings.ts'
import { envExample, envExampleFile } from './env-example.ts'

const text = readFileSync(envExampleFile, 'utf8')

test('.env.example is what the tables of settings say (`npm run env-example` writes it)', () => {
  expect(text).toBe(envExample())
})

test('a copy of .env.example changes nothing: every value in it is the default', () => {
  const all = { ...commonSettings, ...gatewaySettings, ...agentSettings }
  expect(readSettings(all, parseEnv(text) as NodeJS.ProcessEnv)).toEqual(readSettings(all, {}))
})

test('no secret stands in .env.example', () => {
  const values = parseEnv(text)
  for (const [, name = ''] of text.matchAll(/\(secret\)\n(\w+)=/g)) expect(values[name]).toBe('')
})
