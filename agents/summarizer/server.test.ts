import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import agent from './agent.ts'

const article =
  'The mill was built in 1840 by two brothers. It ground flour for the whole valley of the Arn. The flood of 1911 destroyed the wheel of the mill. Nobody rebuilt the mill, and the valley bought its flour elsewhere.'

test('streams the summary over HTTP sentence by sentence, and the artifact is complete', async () => {
  await using server = await testAgent(agent)
  const deltas: string[] = []
  let whole = ''
  // A task that finishes within one turn of the event loop is not streamed.
  const mills = Array.from(
    { length: 3000 },
    (_, n) => `Mill ${n} was built in ${1000 + (n % 900)} by ${n % 7} brothers.`,
  )
  const long = `In two sentences, sum this up: ${article} ${mills.join(' ')}`
  for await (const event of server.caller('alice').stream(long)) {
    if (event.kind !== 'artifact-update') continue
    const text = event.artifact.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
    if (event.last_chunk === false) deltas.push(text)
    else whole = text
  }
  expect(deltas).toHaveLength(2)
  expect(whole).toBe(deltas.join(''))
})

test('asks for the text over HTTP, keeps the options, and summarizes the result of another task', async () => {
  await using server = await testAgent(agent)
  const alice = server.caller('alice')
  const asked = await alice.sendAndWait('Please summarize in one sentence')
  expect(asked.status).toMatchObject({
    state: 'input-required',
    message: { parts: [{ text: 'Which text shall I sum up?' }] },
  })
  const long = await alice.sendAndWait({
    text: article,
    taskId: asked.id,
    parts: [{ kind: 'data', data: { sentences: 4 } }],
  })
  expect(long.artifacts).toMatchObject([{ parts: [{ text: article }] }])
  const short = await alice.sendAndWait({ text: 'One sentence!', referenceTaskIds: [long.id] })
  const [part] = short.artifacts[0]?.parts ?? []
  expect(article).toContain(part?.kind === 'text' ? part.text : 'nothing')
})

test('rejects an invalid length over HTTP and gives the reason', async () => {
  await using server = await testAgent(agent)
  const task = await server
    .caller('alice')
    .sendAndWait({ text: article, parts: [{ kind: 'data', data: { sentences: 0 } }] })
  expect(task.status.state).toBe('rejected')
  expect(JSON.stringify(task.status.message)).toContain('whole number from 1 to 100')
})
