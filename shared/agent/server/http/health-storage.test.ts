import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { raw } from '@parley/tools/testing/raw-http'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { testAgent } from '../../testing.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'parley-health-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

test('/health answers 503 once the database file is damaged, even without other requests', async () => {
  await using agent = await testAgent({ handle: () => 'done' }, { dataDir })
  await agent.caller('alice').sendAndWait('hello')
  const health = () => raw(agent, { path: '/health', method: 'GET' })
  expect(await health()).toMatchObject({ status: 200, json: { checks: { storage: 'ok' } } })
  for (const name of await readdir(dataDir)) {
    if (!/\.db(-wal)?$/.test(name)) continue
    const file = path.join(dataDir, name)
    await writeFile(file, (await readFile(file)).fill(0xa5))
  }
  await vi.waitFor(
    async () =>
      expect(await health()).toMatchObject({
        status: 503,
        json: { ready: false, checks: { storage: 'error: unavailable' } },
      }),
    { timeout: 10_000, interval: 100 },
  )
})
