import { beforeEach, expect, test, vi } from 'vitest'
import type { AddInterface } from './add-routes.ts'
import { agent, fail, gatewayForEachTest, post, saying } from './testing.ts'

let uses: Parameters<AddInterface>[1]['routing']['uses']
const testInterface: AddInterface = (_app, { routing }) => {
  uses = routing.uses
}
gatewayForEachTest({}, { testInterface })

const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
let sky: Awaited<ReturnType<typeof agent>>
beforeEach(async () => {
  sky = await agent('sky', 'Weather forecast for any city')
})
const send = () => post('/agents/sky/', rpc('message/send', saying('Will it rain in Lisbon?')))
/** Returns the operations that are noted from now on, also those of later calls. */
const watchUses = () => {
  const note = vi.spyOn(uses, 'note')
  return () => note.mock.calls.map(([, , { operation }]) => operation)
}

test('a message to a named agent is noted if the agent answers it, once in ten minutes', async () => {
  const noted = watchUses()
  sky.on['message/send'] = ({ response }) => fail(response, 'one', 500, -32603, {})
  await send()
  expect(noted()).toEqual([])
  delete sky.on['message/send']
  await send()
  await send()
  expect(noted()).toEqual(['sendMessage'])
})

test.each(['contexts/clear', 'contexts\\/clear', 'contexts\\u002fclear'])(
  'a context that is cleared at a named agent is noted, however its method is written: %s',
  async (method) => {
    await send()
    const noted = watchUses()
    const clear = rpc('METHOD', { context_id: crypto.randomUUID() }).replace('METHOD', method)
    await post('/agents/sky/', clear)
    expect(noted()).toEqual(['clearContext'])
  },
)
