import { header, type Sent } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { bearer, ids, rpc, text, type World } from '../world.ts'

/** Latencies and loads are measured, and scores depend on them. */
const figures = [
  'score',
  'confidence',
  'performance',
  'load',
  'estimated_latency_ms',
  'queue_depth',
  'latency_p50_ms',
]

const weights = { skill_match: 0.5, io_compatibility: 0.2, performance: 0.1, load: 0.1, cost: 0.1 }

/** `POST /agent/negotiation` of agents and gateway, decision records, and the agent chosen by `POST /`. */
export async function negotiation(recorder: Recorder, world: World): Promise<void> {
  const { agents, gateway } = world.deployment
  for (const [name, url] of Object.entries({ echo: agents['echo'], paid: agents['paid'], gateway })) {
    await questions(recorder, name, `${url}/agent/negotiation`)
  }
  await decisions(recorder, world)
  await choices(recorder, world)
}

async function questions(recorder: Recorder, name: string, url: string): Promise<void> {
  const post = (title: string, body: unknown, type = 'application/json') => {
    const sent: Sent = { method: 'POST', url, headers: { 'content-type': type }, body }
    return recorder.exchange(`${title} at ${name}`, sent, { figures })
  }
  const question = { task_summary: 'echo a text back', weights }
  await post('a question', question)
  await post('without weights', { task_summary: 'echo a text back' })
  await post('all weights 0', { ...question, weights: { skill_match: 0 } })
  await post('a weight of 2', { ...question, weights: { skill_match: 2 } })
  await post('a weight that is a string', { ...question, weights: { skill_match: '1' } })
  await post('without a summary', { weights })
  await post('an empty summary', { task_summary: '', weights })
  await post('all fields', {
    ...question,
    task_details: 'a short one',
    input_mime_types: ['text/plain'],
    output_mime_types: ['text/*'],
    max_latency_ms: 5000,
    max_cost_amount: '1.00',
    required_tools: ['echo-chamber'],
    forbidden_tools: ['hammer'],
    min_score: 0.1,
  })
  await post('camel case', { taskSummary: 'echo a text', maxLatencyMs: 5000, minScore: 0.1, weights })
  await post('a cost that is a number', { ...question, max_cost_amount: 0.005 })
  await post('a cost that is not an amount', { ...question, max_cost_amount: 'much' })
  await post('a missing tool', { ...question, required_tools: ['hammer'] })
  await post('a forbidden tool', { ...question, forbidden_tools: ['echo-chamber'] })
  await post('a type that cannot be read', { ...question, input_mime_types: ['video/mp4'] })
  await post('a type that cannot be made', { ...question, output_mime_types: ['image/png'] })
  await post('a score of 1', { ...question, min_score: 1 })
  await post('a score of 3', { ...question, min_score: 3 })
  await post('another trade', { task_summary: 'bake bread', weights })
  await post('weather', { task_summary: 'divine the weather of tomorrow', weights })
  await post('a latency that is a string', { ...question, max_latency_ms: 'soon' })
  await post('a limit of 1', { ...question, limit: 1 })
  await post('a limit of 0', { ...question, limit: 0 })
  await post('not JSON', '{')
  await post('a form', 'task_summary=x', 'application/x-www-form-urlencoded')
  await recorder.exchange(`GET at ${name}`, { url })
  const sent = { method: 'POST', url, headers: { ...bearer('nothing'), 'content-type': 'application/json' } }
  await recorder.exchange(`an unknown token at ${name}`, { ...sent, body: question }, { figures })
}

async function decisions(recorder: Recorder, world: World): Promise<void> {
  const { gateway } = world.deployment
  const [alice, bob] = [await world.client(recorder, 'alice'), await world.client(recorder, 'bob')]
  const ask = async (title: string, headers: Record<string, string>) => {
    const body = { task_summary: 'echo a text back', weights, limit: 2 }
    const url = `${gateway}/agent/negotiation`
    const sent = { method: 'POST', url, headers: { ...headers, 'content-type': 'application/json' }, body }
    return header(await recorder.exchange(title, sent, { figures }), 'x-negotiation-id') ?? ''
  }
  const read = (title: string, id: string, headers: Record<string, string> = {}) =>
    recorder.exchange(title, { url: `${gateway}/negotiations/${id}`, headers }, { figures })
  const free = await ask('a decision without a token', {})
  await read('the decision', free)
  await read('the decision as another caller', free, bearer(bob.token))
  const own = await ask('a decision of alice', bearer(alice.token))
  await read('alice reads her decision', own, bearer(alice.token))
  await read('bob reads the decision of alice', own, bearer(bob.token))
  await read('the decision of alice without a token', own)
  await read('a missing decision', 'f'.repeat(32))
  await read('a malformed id', 'one')
  await read('a decision with an unknown token', own, bearer('nothing'))
}

/** Messages to the gateway without an agent. */
async function choices(recorder: Recorder, world: World): Promise<void> {
  const { gateway } = world.deployment
  const [alice, id] = [await world.client(recorder, 'carol'), ids('choices')]
  const send = (title: string, content: string, configuration?: object) =>
    recorder.exchange(title, rpc(gateway, alice, 'message/send', text(id(), content, {}, configuration)), {
      figures,
    })
  await send('words of no agent', 'quantum chromodynamics')
  await send('no words', ' ')
  await send('a text for plain', 'reverse the letters of a word')
  await send('a text for strict', 'count the letters of a text')
  await send('a text for paid', 'divine the weather of tomorrow')
  await send('a request that narrows the choice', 'echo', {
    negotiation: { required_tools: ['echo-chamber'] },
  })
  await send('a request that no agent meets', 'echo', { negotiation: { required_tools: ['hammer'] } })
  await send('a malformed request', 'echo', { negotiation: { min_score: 7 } })
  await send('output modes of no agent', 'echo a text', { acceptedOutputModes: ['image/png'] })
}
