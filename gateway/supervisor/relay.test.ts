import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { relayEntryIn } from './relay.ts'

test('the folder of an agent with a file like that of the relay is not the folder of the relay', async () => {
  const entry = fileURLToPath(import.meta.resolve('@parley/relay/relay-process'))
  expect(relayEntryIn(path.dirname(entry))).toBe(entry)
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-agent-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const name of ['relay-process.ts', 'relay-process.js']) await writeFile(path.join(folder, name), '')
  expect(relayEntryIn(folder)).toBeUndefined()
})
