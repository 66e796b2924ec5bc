import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { SentenceEncoder } from '@parley/encoder/sentence-encoder'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, describe, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'

const model = new URL('../shared/encoder/model/', import.meta.url)
const stack: AsyncDisposable[] = []
const folders: string[] = []

afterEach(async () => {
  for (const one of stack.splice(0).reverse()) await one[Symbol.asyncDispose]()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

async function start(folder: URL = model): Promise<GatewayApp> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-encoder-'))
  folders.push(dataDir)
  const encoder = new SentenceEncoder({ folder })
  const settings = gatewayConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'silent',
    PARLEY_EMBEDDED_OAUTH: 'yes',
  })
  const gateway = await startGatewayApp({
    settings,
    encoder,
    log: makeLog({ level: 'silent', name: 'test' }),
  })
  stack.push(encoder, gateway)
  for (const [name, description] of [
    ['garage', 'Repairs cars and replaces their tyres'],
    ['board', 'Suggests the next move in a game of chess'],
  ] as const) {
    await gateway.registry.register({
      name,
      description,
      url: 'http://127.0.0.1:9',
      card: { name, description },
      skills: [
        { id: name, name, description, tags: [], input_modes: ['text/plain'], output_modes: ['text/plain'] },
      ],
      owner: 'test',
      origin: 'supervised',
      verified: true,
      admitted: true,
      admittedBy: 'supervisor',
    })
  }
  return gateway
}

async function negotiate(gateway: GatewayApp, text: string) {
  const response = await fetch(`${gateway.addresses.local}/agent/negotiation`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task_summary: text, weights: { skill_match: 1 } }),
  })
  return (await response.json()) as {
    agent: { slug: string } | null
    reasons: string[]
    subscores: { skill_match: number }
  }
}

test('with the encoder, an agent is found by meaning, and the reasons state it', async () => {
  const gateway = await start()
  const found = () => negotiate(gateway, 'my automobile has a flat wheel')
  await expect.poll(async () => (await found()).reasons).toContain('ranked by words and meaning')
  expect((await found()).agent?.slug).toBe('garage')
})

test('a text without words, or only of emoji and mixed scripts, is answered without the encoder or with it', async () => {
  const gateway = await start()
  await expect
    .poll(async () => (await negotiate(gateway, 'chess')).reasons)
    .toContain('ranked by words and meaning')
  for (const text of [' ', '🦊🦊🦊', '…!?', 'шахматы チェス chess', 'x'.repeat(100_000)])
    expect((await negotiate(gateway, text)).subscores.skill_match).toBeGreaterThanOrEqual(0)
})

describe('a model that cannot be used leaves words only, and the reasons state why', () => {
  const withModel = async (change: (folder: string) => Promise<void>) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'parley-model-'))
    folders.push(folder)
    await cp(model, folder, { recursive: true })
    await change(folder)
    return pathToFileURL(`${folder}/`)
  }

  test.each<[string, (folder: string) => Promise<void>, string]>([
    [
      'damaged',
      (folder) => writeFile(path.join(folder, 'encoder.onnx'), 'no model'),
      'the file encoder.onnx of the encoder is damaged',
    ],
    ['missing', (folder) => rm(path.join(folder, 'encoder.onnx')), 'a file of the encoder is missing'],
  ])('%s', async (_what, change, reason) => {
    const gateway = await start(await withModel(change))
    const answer = await negotiate(gateway, 'repair my car')
    expect(answer.agent?.slug).toBe('garage')
    expect(answer.reasons.join()).toContain(`ranked by words only: ${reason}`)
  })
})
