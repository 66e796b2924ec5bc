import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { routeMinScore } from '@parley/negotiation/score/weights'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const usual = { skill_match: 0.55, io_compatibility: 0.2, performance: 0.15, load: 0.05, cost: 0.05 }
const subscores = { skill_match: 0.5, io_compatibility: 1, performance: 0, load: 0.25, cost: 7 }
const sky = {
  agent: { slug: 'sky' },
  can_handle: true,
  score: 0.61234,
  subscores,
  reasons: ['skill weather: rain'],
}
const board = {
  agent: { slug: 'board\u001b[2J' },
  can_handle: false,
  score: 0.2,
  subscores: {},
  reasons: ['x'],
  rejection_reason: 'no skill matches the task',
}
const answer = {
  ...sky,
  candidates: [sky, board],
  excluded: [{ agent: 'far', rule: 'not admitted' }],
  excluded_total: 3,
  negotiation_id: 'n1',
}

/** Starts a gateway that returns this answer to every negotiation and records the requests. */
async function scriptedGateway(answers: object) {
  const asked: unknown[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      asked.push(JSON.parse(body))
      return response.setHeader('content-type', 'application/json').end(JSON.stringify(answers))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('negotiate prints rank, agent, score, sub-scores as bars, reasons and the excluded agents with their rules', async () => {
  await using gateway = await scriptedGateway(answer)
  const { code, stdout } = await runCli(['negotiate', 'will it rain', '--token', 't', '--url', gateway.url])
  expect(code).toBe(0)
  expect(stdout.split('\n')).toEqual([
    'RANK  AGENT  SCORE   SKILL     I/O       SPEED     LOAD      COST      REASONS',
    '1     sky    0.6123  ████····  ████████  ········  ██······  ████████  skill weather: rain',
    '2!    board  0.2000  ········  ········  ········  ········  ········  no skill matches the task',
    '! would not get the task',
    '',
    'EXCLUDED  RULE',
    'far       not admitted',
    'and 2 more',
    '',
  ])
})

test('negotiate prints which agent serves each part of the request', async () => {
  const needs = [
    { position: 1, text: 'will it\u001b[2J rain', agent: 'sky', score: 0.9 },
    { position: 2, text: 'brew coffee', agent: null, score: 0 },
  ]
  await using gateway = await scriptedGateway({ ...answer, candidates: [sky], excluded: [], needs })
  const { stdout } = await runCli(['negotiate', 'will it rain', '--token', 't', '--url', gateway.url])
  expect(stdout.split('\n').slice(2)).toEqual([
    '',
    'FOR PART  SCORE   TEXT',
    'sky       0.9000  will it rain',
    'none      0.0000  brew coffee',
    '',
  ])
})

test('where the order is not that of the scores, the reason for it comes first', async () => {
  const other = {
    ...sky,
    agent: { slug: 'new' },
    score: 0.9,
    reasons: ['skill weather: rain', 'unverified new agent'],
  }
  await using gateway = await scriptedGateway({ ...answer, candidates: [sky, other] })
  const { stdout } = await runCli(['negotiate', 'will it rain', '--token', 't', '--url', gateway.url])
  expect(stdout).toMatch(/^2 +new .* {2}unverified new agent; skill weather: rain$/m)
})

test('--json prints the gateway’s response, and options become request fields', async () => {
  await using gateway = await scriptedGateway({ ...answer, can_handle: false })
  const options = [
    '--details',
    'd',
    '--input',
    'text/csv',
    '--max-latency',
    '5',
    '--max-cost',
    '0.1',
    '--tool',
    'a',
  ]
  const more = [
    '--without-tool',
    'b',
    '--min-score',
    '0.5',
    '--limit',
    '2',
    '--weights',
    'skill_match=1,load=.5',
  ]
  const argv = ['negotiate', 'rain', ...options, ...more, '--json', '--token', 't', '--url', gateway.url]
  const { code, stdout } = await runCli(argv)
  expect([code, JSON.parse(stdout)]).toEqual([1, { ...answer, can_handle: false }])
  expect(gateway.asked).toEqual([
    {
      task_summary: 'rain',
      task_details: 'd',
      input_mime_types: ['text/csv'],
      max_latency_ms: 5,
      max_cost_amount: '0.1',
      required_tools: ['a'],
      forbidden_tools: ['b'],
      min_score: 0.5,
      limit: 2,
      weights: { skill_match: 1, load: 0.5 },
    },
  ])
})

test.each<[string, string[], Record<string, string>, object]>([
  ['as the gateway asks for a message', [], {}, { weights: usual, min_score: routeMinScore }],
  ['with the gateway’s ROUTE_MIN_SCORE', [], { ROUTE_MIN_SCORE: '0.5' }, { weights: usual, min_score: 0.5 }],
  ['with other weights, and no threshold', ['--weights', 'load=1'], {}, { weights: { load: 1 } }],
])('by default, the command requests a negotiation %s', async (_what, options, env, question) => {
  await using gateway = await scriptedGateway(answer)
  await runCli(['negotiate', 'rain', ...options, '--token', 't', '--url', gateway.url], { env })
  expect(gateway.asked).toEqual([{ task_summary: 'rain', limit: 10, ...question }])
})

test.each([
  [['--weights', 'speed=1']],
  [['--weights', 'load=2']],
  [['--weights', 'load']],
  [['--min-score', '-1']],
  [['--limit', 'x']],
])('the command rejects %s as incorrect usage', async (options) => {
  const { code } = await runCli(['negotiate', 'x', ...options, '--token', 't', '--url', 'http://127.0.0.1:1'])
  expect(code).toBe(2)
})
