import { cp, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { agent, embeddedOAuth, gateway, gatewayForEachTest, oauthClient, restart } from './testing.ts'

gatewayForEachTest({ ...embeddedOAuth, REGISTRY_ALLOWED_HOSTS: '127.0.0.1', PROBE_EXAMPLES: 'yes' })

const probing = { ...embeddedOAuth, PROBE_EXAMPLES: 'yes' }

test('a supervised agent completes its own examples for the client of the gateway', async () => {
  const folder = await mkdtemp(path.join(import.meta.dirname, '.probed-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await cp(path.join(import.meta.dirname, '../agents/calculator'), path.join(folder, 'calculator'), {
    recursive: true,
  })
  await restart(probing, folder)
  const probe = () => gateway().registry.find('calculator')?.exampleProbe
  await expect.poll(() => probe()?.completed ?? 0, { timeout: 30_000 }).toBeGreaterThan(0)
  expect(probe()).toMatchObject({ failed: 0, timedOut: 0, authRequired: 0 })
}, 60_000)

test('the client of the gateway is created with the first probe, and its token is exchanged', async () => {
  await oauthClient('someone')
  const examples = ['Add 2 and 3']
  const modes = { input_modes: ['text/plain'], output_modes: ['text/plain'] }
  const skill = { id: 'sums', name: 'Sums', description: 'Adds', tags: [], examples, ...modes }
  const fake = await agent('adder', 'Adds numbers', { skills: [skill] })
  await expect.poll(() => fake.sent().length, { timeout: 8000 }).toBe(1)
  expect(fake.sent()[0]?.headers.authorization).toMatch(/^Bearer pxt_/)
})

test('without PROBE_EXAMPLES, no agent is probed', async () => {
  await restart({ ...embeddedOAuth })
  const skill = { id: 'sums', name: 'Sums', description: 'Adds', tags: [], examples: ['Add 2 and 3'] }
  const modes = { input_modes: ['text/plain'], output_modes: ['text/plain'] }
  const fake = await agent('adder', 'Adds numbers', { skills: [{ ...skill, ...modes }] })
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(fake.calls).toEqual([])
  expect(gateway().registry.find('adder')?.exampleProbe).toBeUndefined()
})

test.each([
  ['PROBE_EXAMPLES', 'maybe', 'must be yes or no'],
  ['PROBE_EXAMPLES_SECONDS', '0', 'must be a whole number from 1 to 600'],
  ['PROBE_EXAMPLES_SECONDS', '601', 'must be a whole number from 1 to 600'],
  ['PROBE_EXAMPLES_SECONDS', '1.5', 'must be a whole number from 1 to 600'],
])('%s=%s is refused', async (name, value, sentence) => {
  const { gatewayConfig } = await import('./config.ts')
  expect(() => gatewayConfig({ DATA_DIR: os.tmpdir(), [name]: value })).toThrow(sentence)
})
