import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { price } from '@parley/tools/testing/paid-agent'
import { expect, onTestFinished, test } from 'vitest'
import { agent, call, gateway, gatewayForEachTest, restart, saying } from './testing.ts'

gatewayForEachTest()

const weather = 'Weather forecast for any city'
const paid = { card: { executionCost: price } }

const entryOf = (slug: string) => gateway().registry.find(slug)?.id ?? ''
const setStatus = (slug: string, status: 'starting' | 'ready' | 'unreachable') =>
  gateway().registry.setStatus(entryOf(slug), status)
const eject = (slug: string, lastsMs: number) =>
  gateway().registry.eject(entryOf(slug), 'repeated failures', Date.now() + lastsMs)

test('a message waits for the best agent while that agent is starting', async () => {
  const sky = await agent('sky', weather)
  setStatus('sky', 'starting')
  const sent = call('message/send', saying('weather forecast for any city'))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(sky.calls).toEqual([])
  setStatus('sky', 'ready')
  const taken = await sent
  expect([taken.status, taken.headers.get('x-agent'), sky.sent().length]).toEqual([200, 'sky', 1])
})

test.each<[string, string, number, () => unknown]>([
  ['is still starting after 3 s', 'being started', 2, () => setStatus('sky', 'starting')],
  ['is unreachable for a short time', 'unreachable', 10, () => setStatus('sky', 'unreachable')],
  ['is ejected by outlier detection', 'quarantined', 16, () => eject('sky', 15_000)],
])(
  'if the only capable agent %s, the message gets 503 -32042 with Retry-After',
  async (_what, rule, seconds, leave) => {
    await agent('sky', weather)
    await leave()
    const refused = await call('message/send', saying('weather forecast for any city'))
    expect([refused.status, refused.json.error.code]).toEqual([503, -32042])
    expect(refused.json.error.data).toMatchObject({ reason: 'agent_down', away: [{ agent: 'sky', rule }] })
    expect(refused.json.error.message).toContain(
      `sky can handle this task but is not available at the moment (${rule})`,
    )
    expect(refused.headers.get('retry-after')).toBe(String(seconds))
    const record = await call('message/send', saying('zzqx brrrgl'))
    expect(record.json.error.code).toBe(-32004)
  },
)

test('an agent that is quarantined or not admitted is excluded permanently, so the message gets -32004', async () => {
  await agent('sky', weather)
  await agent('sky-two', weather, { admitted: false })
  await gateway().registry.quarantine(entryOf('sky'), 'operator', 'because')
  const refused = await call('message/send', saying('weather forecast for any city'))
  expect([refused.status, refused.json.error.code]).toEqual([400, -32004])
})

test.each<[string, (folder: string) => Promise<unknown>]>([
  ['whose folder was removed', () => Promise.resolve()],
  [
    'that is not started because a setting is missing',
    async (folder) => {
      await mkdir(path.join(folder, 'sky'))
      await writeFile(path.join(folder, 'sky', 'index.ts'), '')
      await writeFile(path.join(folder, 'sky', 'settings.json'), '{"required":["SKY_API_KEY_OF_NOBODY"]}')
    },
  ],
])('a message does not wait for a supervised agent %s and immediately gets -32004', async (_what, fill) => {
  await agent('sky', weather)
  const agentsDir = await mkdtemp(path.join(os.tmpdir(), 'parley-agents-'))
  onTestFinished(() => rm(agentsDir, { recursive: true }))
  await fill(agentsDir)
  await restart({}, agentsDir)
  expect(gateway().registry.find('sky')?.status).not.toBe('ready')
  const refused = await call('message/send', saying('weather forecast for any city'))
  expect([refused.status, refused.json.error.code]).toEqual([400, -32004])
  expect(refused.json.error.data.excluded[0]).not.toHaveProperty('temporary')
})

test('a negotiation marks temporary exclusions', async () => {
  await agent('sky', weather)
  await agent('sea', 'Sea levels', { admitted: false })
  setStatus('sky', 'starting')
  const refused = await call('message/send', saying('zzqx brrrgl'))
  expect(refused.json.error.data.excluded).toEqual([
    { agent: 'sea', rule: 'not admitted' },
    { agent: 'sky', rule: 'being started', temporary: true },
  ])
})

test.each<[string, () => unknown]>([
  ['is starting', () => setStatus('sky', 'starting')],
  ['is ejected', () => eject('sky', 60_000)],
  ['is unreachable', () => setStatus('sky', 'unreachable')],
])('a paid agent does not substitute for a free one that matches better and %s', async (_what, leave) => {
  await agent('sky', weather)
  const oracle = await agent('oracle', 'Weather forecast for a city, with a report', paid)
  await leave()
  const refused = await call('message/send', saying('weather forecast for any city'))
  expect([refused.status, refused.json.error.code]).toEqual([503, -32042])
  expect(oracle.calls).toEqual([])
})

test('a paid agent does not substitute for a free one that could not be reached', async () => {
  const sky = await agent('sky', weather)
  const oracle = await agent('oracle', 'Weather forecast for a city, with a report', paid)
  await sky.stop()
  const refused = await call('message/send', saying('weather forecast for any city'))
  expect([refused.status, refused.json.error.code, oracle.calls]).toEqual([503, -32042, []])
  expect(refused.json.error.data.tried).toEqual([{ agent: 'sky', outcome: 'not reached' }])
})

test('a busy or recently failed agent gets the message if no other can handle it, unless the caller sets a minimum score', async () => {
  const sky = await agent('sky', weather)
  const text = 'weather forecast for any city'
  const negotiation = { weights: { skill_match: 0.5, performance: 0.3, load: 0.2 } }
  gateway().registry.setMeasurements(entryOf('sky'), { samples: 20, successShare: 0.01 })
  gateway().registry.heartbeat(entryOf('sky'), { queueDepth: 1000 })
  const taken = await call('message/send', saying(text, {}, { negotiation }))
  expect([taken.headers.get('x-agent'), sky.sent().length]).toEqual(['sky', 1])
  const strict = { ...negotiation, min_score: 0.75 }
  const refused = await call('message/send', saying(text, {}, { negotiation: strict }))
  expect([refused.status, refused.json.error.code]).toEqual([400, -32004])
  expect(sky.sent()).toHaveLength(1)
})

test('a paid agent does not substitute for a free one that matches better and failed recently', async () => {
  const sky = await agent('sky', weather)
  const oracle = await agent('oracle', 'Reports about cities', paid)
  gateway().registry.setMeasurements(entryOf('sky'), { samples: 20, successShare: 0.01 })
  const negotiation = { weights: { skill_match: 0.5, performance: 0.5 } }
  const taken = await call('message/send', saying('weather forecast for any city', {}, { negotiation }))
  expect([taken.headers.get('x-agent'), sky.sent().length, oracle.calls]).toEqual(['sky', 1, []])
})

test('a paid agent that matches better than the free ones gets the message', async () => {
  const oracle = await agent('oracle', weather, paid)
  await agent('sea', 'Tides and levels of the sea')
  setStatus('sea', 'starting')
  const taken = await call('message/send', saying('weather forecast for any city'))
  expect([taken.headers.get('x-agent'), oracle.sent().length]).toEqual(['oracle', 1])
})

test('another free agent with an equal score immediately substitutes for an absent one', async () => {
  await agent('sky', weather)
  const second = await agent('sky-two', weather)
  setStatus('sky', 'starting')
  const taken = await call('message/send', saying('weather forecast for any city'))
  expect([taken.headers.get('x-agent'), second.sent().length]).toEqual(['sky-two', 1])
})

test('a free agent with a lower score gets the message if the best one does not return in time', async () => {
  await agent('sky', weather)
  await agent(
    'clouds',
    'Weather maps, forecast of clouds and archive of measurements for a region and period',
  )
  setStatus('sky', 'starting')
  const taken = await call('message/send', saying('weather forecast for any city'))
  expect([taken.status, taken.headers.get('x-agent')]).toEqual([200, 'clouds'])
})
