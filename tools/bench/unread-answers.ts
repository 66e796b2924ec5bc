/**
 * Memory of the agent's process and response time of `/health` while clients request a 9.9 MB task and never read the
 * response. Each number of requests is measured with a new process.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient } from '@parley/client/internal/client'
import { KillableAgent } from '../testing/killable-agent.ts'
import { quick } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'

const megabyte = 1024 * 1024
const taskBytes = 9_900_000
const counts = quick ? [150] : [150, 450]
const attackMs = 15_000
const growthMostMb = 600
const healthMostMs = 1000

/** The handler generates the large output, so that the request stays small. */
const source = `export default {
  name: 'large', description: 'Returns a large text',
  skills: [{ id: 'large', name: 'Large', description: 'Returns a large text' }],
  handle: () => 'x'.repeat(${taskBytes}),
}`

interface Result {
  requests: number
  idleMb: number
  peakMb: number
  healthWorstMs: number
  statuses: Record<string, number>
}

const results: Result[] = []
for (const requests of counts) results.push(await attack(requests))
printTable(
  ['unread answers', 'RSS before MB', 'RSS peak MB', '/health max ms', 'statuses'],
  results.map(({ requests, idleMb, peakMb, healthWorstMs, statuses }) => [
    String(requests),
    idleMb.toFixed(0),
    peakMb.toFixed(0),
    healthWorstMs.toFixed(0),
    Object.entries(statuses)
      .map(([status, count]) => `${count} × ${status}`)
      .join(', '),
  ]),
)
for (const { requests, idleMb, peakMb, healthWorstMs } of results) {
  expectAtMost(`${requests} unread answers: growth`, peakMb - idleMb, growthMostMb, ' MB')
  expectAtMost(`${requests} unread answers: /health`, healthWorstMs, healthMostMs, ' ms')
}
await saveResults('unread-answers', { taskBytes, results })

async function attack(requests: number): Promise<Result> {
  await using agent = await KillableAgent.start(source)
  const token = agent.identityProvider.issue('attacker')
  const client = new AgentClient({ url: agent.url, token, requestTimeoutMs: 15_000 })
  const { id } = await client.send('a large text, please')
  while ((await client.get(id, { historyLength: 0 })).status.state !== 'completed') await wait(50)
  const idleMb = rssOf(agent.pid)
  const statuses: Record<string, number> = {}
  const sockets = Array.from({ length: requests }, () =>
    requestWithoutReading(agent.url, token, id, statuses),
  )
  let [peakMb, healthWorstMs] = [idleMb, 0]
  const until = Date.now() + attackMs
  while (Date.now() < until) {
    const began = performance.now()
    const answered = await fetch(`${agent.url}/health`).then(
      (response) => response.arrayBuffer(),
      () => {},
    )
    if (answered === undefined) throw new Error(`the agent exited with ${requests} unread responses`)
    healthWorstMs = Math.max(healthWorstMs, performance.now() - began)
    peakMb = Math.max(peakMb, rssOf(agent.pid))
    await wait(50)
  }
  for (const socket of sockets) socket.destroy()
  return { requests, idleMb, peakMb, healthWorstMs, statuses }
}

/** Reads only the status line. */
function requestWithoutReading(
  url: string,
  token: string,
  taskId: string,
  statuses: Record<string, number>,
): Socket {
  const { port, host } = new URL(url)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { task_id: taskId } })
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  socket.write(
    `POST / HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  socket.once('data', (chunk) => {
    socket.pause()
    const status = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1] ?? '?'
    statuses[status] = (statuses[status] ?? 0) + 1
  })
  socket.on('error', () => {})
  return socket
}

function rssOf(pid: number | undefined): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number(kilobytes) * 1024) / megabyte
}
