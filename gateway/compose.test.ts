import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { commonSettings, gatewaySettings } from '../shared/process/settings.ts'

/** Settings that the container takes from the environment under their own name. */
async function passedOn() {
  const text = await readFile('docker-compose.yml', 'utf8')
  return [...text.matchAll(/^ {6}(\w+): \$\{(\w+):-.*\}$/gm)].map(([, name, from]) =>
    name === from ? name : undefined,
  )
}

test('docker-compose.yml passes on every setting of the OAuth server, the gateway’s identity and its registry', async () => {
  const asked = Object.keys({ ...commonSettings, ...gatewaySettings }).filter((name) =>
    /^(OAUTH|SERVICE_GATEWAY|REGISTRY|PARLEY)_/.test(name),
  )
  expect(asked.length).toBeGreaterThan(10)
  expect(await passedOn()).toEqual(expect.arrayContaining(asked))
})

test('docker-compose.yml passes on every setting that an agent of agents/ asks for', async () => {
  const asked = await Promise.all(
    globSync('agents/*/settings.json').map(async (file) => {
      const { env, required } = JSON.parse(await readFile(file, 'utf8')) as Record<string, string[]>
      return [env ?? [], required ?? []].flat()
    }),
  )
  expect(asked.flat()).toContain('OPENAI_BASE_URL')
  expect(await passedOn()).toEqual(expect.arrayContaining(asked.flat()))
})
