import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { commonSettings, gatewaySettings } from '../shared/process/settings.ts'

test('docker-compose.yml passes on every setting of the OAuth server, the gateway’s identity and its registry', async () => {
  const text = await readFile('docker-compose.yml', 'utf8')
  const passed = [...text.matchAll(/^ {6}(\w+): \$\{(\w+):-.*\}$/gm)].map(([, name, from]) =>
    name === from ? name : undefined,
  )
  const asked = Object.keys({ ...commonSettings, ...gatewaySettings }).filter((name) =>
    /^(OAUTH|SERVICE_GATEWAY|REGISTRY|PARLEY)_/.test(name),
  )
  expect(asked.length).toBeGreaterThan(10)
  expect(passed).toEqual(expect.arrayContaining(asked))
})
