import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { expect, test } from 'vitest'

const library = import.meta.resolve('@parley/agent')
const source = `import { artifact } from '${library}'
export default {
  name: 'three', description: 'Makes three artifacts', skills: [{ id: 't', name: 'T', description: 'T' }],
  async *handle() { for (const name of ['a', 'b', 'c']) yield artifact(name, 'text of ' + name) },
}`

interface Post {
  event: { sequence: number; kind: string; task_id: string; artifact?: { name: string } }
  post: number
  answered: number
  again: boolean
  late: boolean
  missing: number[]
}

test('a receiver process gets events 1 to 5 of a task with three artifacts from an agent process, without a gap and in order', async () => {
  await using agent = await KillableAgent.start(source, { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' })
  await using listen = await startListening('--token', 'let-me-in', '--once')
  const client = new AgentClient({ url: agent.url, token: agent.identityProvider.issue('alice') })
  const config = { id: randomUUID(), url: listen.url, token: 'let-me-in' }
  const task = await client.send('go', { push_notification_config: config })
  const { code, posts, totals } = await listen.ended()
  expect(code).toBe(0)
  expect(posts.map(({ event }) => [event.sequence, event.artifact?.name ?? event.kind])).toEqual([
    [1, 'status-update'],
    [2, 'a'],
    [3, 'b'],
    [4, 'c'],
    [5, 'status-update'],
  ])
  expect(posts[0]?.event).toMatchObject({ status: { state: 'working' }, final: false })
  expect(posts.at(-1)?.event).toMatchObject({ status: { state: 'completed' }, final: true })
  for (const { event, ...how } of posts) {
    expect(event.task_id).toBe(task.id)
    expect(how).toEqual({ post: 1, answered: 200, again: false, late: false, missing: [] })
  }
  expect(totals).toMatchObject({ tasks: 1, events: 5, posts: 5, missing: 0, outOfOrder: 0, repeated: 0 })
  const log = (await client.call('tasks/events', { id: task.id })) as { events: unknown[] }
  expect(posts.map(({ event }) => event)).toEqual(log.events)
})

/** Starts `parley listen --json` in a separate process. */
async function startListening(...argv: string[]) {
  const bin = path.join(import.meta.dirname, 'bin.mjs')
  const all = [bin, 'listen', '--json', '--port', '0', ...argv]
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const closed = once(child, 'close') as Promise<[number | null]>
  await expect.poll(() => stderr, { timeout: 100_000 }).toContain('Listening at')
  return {
    url: /http:\S+/.exec(stderr)?.[0] ?? '',
    async ended() {
      const [code] = await closed
      const posts = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Post)
      const { totals } = JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '') as { totals: object }
      return { code, posts, totals }
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await closed
    },
  }
}
