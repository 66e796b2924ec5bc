import { makeDid } from '@parley/kit/did/did'
import { verifyDocument } from '@parley/kit/did/document'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { partKey, partSignature, signPart, verifyParts } from '@parley/kit/did/part-signature'
import { signRequest } from '@parley/kit/did/signature'
import { raw, rpc } from '@parley/tools/testing/raw-http'
import type { WirePart, WireTask } from '@parley/wire/codecs/parley/shapes'
import type { Part } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import type { HandlerContext } from '../../author/context.ts'
import { artifact, file } from '../../author/output.ts'
import { type TestAgent, testAgent } from '../../testing.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const stranger = keyPairFromSeed(Buffer.alloc(32, 2))
const did = makeDid({ author: 'alice', name: 'agent', publicKey: key.publicKey })

/** Returns the agent's public keys. */
async function keysOf(agent: TestAgent): Promise<string[]> {
  const answer = await raw(agent, {
    method: 'GET',
    path: `/did/resolve?did=${encodeURIComponent(agent.did)}`,
  })
  return verifyDocument(answer.json, agent.did)
}

test('each text, data and file part of an artifact carries the signature of the agent, which one changed byte invalidates', async () => {
  await using agent = await testAgent({
    handle: async function* (): AsyncGenerator<never> {
      yield* [
        'Grüße, ',
        '😀',
        { n: 1.5, s: 'é' },
        file('a.txt', 'text/plain', 'hello'),
        artifact('more', 'x', { y: 1 }),
      ] as never[]
    },
  })
  const task = await agent.caller('alice').sendAndWait('go')
  const keys = await keysOf(agent)
  const verdicts = verifyParts(task, keys)
  expect(verdicts.map(({ kind, verdict }) => [kind, verdict])).toEqual(
    ['text', 'data', 'file', 'text', 'data'].map((kind) => [kind, 'verified']),
  )
  const flipped = JSON.parse(JSON.stringify(task).replaceAll('Grüße', 'Grüsse')) as WireTask
  expect(verifyParts(flipped, keys)[0]?.verdict).toBe('crypto_mismatch')
  // The answer in the history has the same parts.
  expect(task.history.at(-1)?.parts[0]).toEqual(task.artifacts[0]?.parts[0])
})

test('a part that an agent returns to its caller carries the signature of the agent instead of the one in the request', async () => {
  await using agent = await testAgent({
    handle: ({ message }) => ({ ...artifact('echo'), parts: message.parts as Part[] }),
  })
  const forged = { [partSignature]: 'forged', [partKey]: 'forged', page: 7 }
  const parts: WirePart[] = [{ kind: 'text', text: 'hello', metadata: forged }]
  const task = await agent.caller('alice').sendAndWait({ parts })
  expect(verifyParts(task, await keysOf(agent))[0]?.verdict).toBe('verified')
  expect(task.artifacts[0]?.parts[0]?.metadata).toMatchObject({ page: 7 })
  // The caller's message is stored unchanged.
  expect(task.history[0]?.parts[0]?.metadata).toEqual(forged)
})

/** The `verified` values that the handler receives for a message with these parts. */
async function told(parts: object[], how: { as?: string; signed?: boolean; agentKnows?: boolean } = {}) {
  const seen = Promise.withResolvers<unknown>()
  const handle = ({ message, files, caller }: HandlerContext) => {
    seen.resolve({
      parts: message.parts.map(({ verified }) => verified),
      files: files.map(({ verified }) => verified),
      signed: caller.signed,
    })
    return 'done'
  }
  await using agent = await testAgent({ handle })
  if (how.agentKnows !== false) agent.identityProvider.clients.set(did, { public_key: key.publicKeyBase58 })
  const message = { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'r-1', method: 'message/send', params: { message } })
  const headers: Record<string, string> = how.signed === true ? signRequest({ did, key, body }) : {}
  const answer = await rpc(
    agent,
    '',
    {},
    { token: agent.identityProvider.issue(how.as ?? did), body, headers },
  )
  expect(answer.status).toBe(200)
  expect(answer.text).not.toContain('verified')
  const said = await seen.promise
  const task = await agent.caller(how.as ?? did).wait(answer.json.result.id as string)
  expect(JSON.stringify(task)).not.toMatch(/"(verified|signed)"/)
  return said
}

const text: Part = { kind: 'text', text: 'hi' }
const bytes: Part = { kind: 'file', file: { name: 'a', mimeType: 'a/b', bytes: 'aGk=' } }

test('the agent verifies the signature of a received part with the key of the caller, and the handler sees the result', async () => {
  const parts = [
    signPart(text, key),
    signPart(text, stranger),
    text,
    signPart(bytes, key),
    { ...bytes, ...signPart({ ...bytes, file: { bytes: '' } }, key), file: bytes.file },
  ]
  expect(await told(parts)).toEqual({
    parts: [true, false, undefined, true, false],
    files: [true, false],
    signed: false,
  })
})

test('without the key of the caller, `verified` is absent whatever the part contains', async () => {
  const parts = [{ ...signPart(text, key), verified: true }]
  const nothing = { parts: [undefined], files: [], signed: false }
  expect(await told(parts, { as: 'alice' })).toEqual(nothing)
  expect(await told(parts, { agentKnows: false })).toEqual(nothing)
})

test('the handler sees whether the request was signed', async () => {
  expect(await told([text], { signed: true })).toMatchObject({ signed: true })
  expect(await told([text])).toMatchObject({ signed: false })
})
