import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { agentSettings, commonSettings, gatewaySettings, readSettings } from '@parley/kit/process/settings'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { envExample, envExampleFile } from './env-example.ts'

const root = path.dirname(import.meta.dirname)
const all = { ...commonSettings, ...gatewaySettings, ...agentSettings }
const text = readFileSync(envExampleFile, 'utf8')

test('.env.example matches the tables of settings (`npm run env-example` writes it)', () => {
  expect(text).toBe(envExample())
})

test('a copy of .env.example changes nothing, because every value in it is the default', () => {
  expect(readSettings(all, parseEnv(text) as NodeJS.ProcessEnv)).toEqual(readSettings(all, {}))
})

test('.env.example contains no secret', () => {
  const values = parseEnv(text)
  for (const [, name = ''] of text.matchAll(/\(secret\)\n(\w+)=/g)) expect(values[name]).toBe('')
})

test('the image sets only known settings', () => {
  const compose = parse(readFileSync(path.join(root, 'docker-compose.yml'), 'utf8')) as {
    services: Record<string, { environment: object }>
  }
  const image = /^ENV (.+)$/m.exec(readFileSync(path.join(root, 'Dockerfile'), 'utf8'))?.[1] ?? ''
  const named = [
    ...Object.values(compose.services).flatMap((service) => Object.keys(service.environment)),
    ...[...image.matchAll(/(\w+)=/g)].map(([, name = '']) => name),
  ]
  // The folder of the compile cache is not a setting of Parley.
  const known = [...Object.keys(all), ...Object.keys(parseEnv(text)), 'XDG_CACHE_HOME']
  expect(named).toContain('DATA_DIR')
  expect(named.filter((name) => !known.includes(name))).toEqual([])
})
