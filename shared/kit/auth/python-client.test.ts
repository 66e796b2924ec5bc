import { execFile, spawnSync } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { testAgent } from '@parley/agent/testing'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { describe, expect, test } from 'vitest'
import { makeDid } from '../did/did.ts'
import { keyPairFromSeed } from '../did/keys.ts'

/** A Python installation with one of Debian's two Ed25519 packages. */
const python = ['python3', '/usr/bin/python3'].find((program) =>
  ['nacl.signing', 'cryptography.hazmat.primitives.asymmetric.ed25519'].some(
    (name) => spawnSync(program, ['-c', `import ${name}`], { stdio: 'ignore' }).status === 0,
  ),
)
const program = path.join(import.meta.dirname, '../../../tools/testing/signed_request.py')
const seed = Buffer.alloc(32, 5)
const key = keyPairFromSeed(seed)
const did = makeDid({ author: 'guido', name: 'agent', publicKey: key.publicKey })
const text = 'Grüße, 世界 – 😀 \u2028 \u007f "\\'

describe.skipIf(python === undefined)('a program in Python signs a request (needs python3-nacl)', () => {
  test.each([
    ['escaped, the default of json.dumps', true],
    ['not escaped', false],
  ])('a request with a non-ASCII body (%s) is accepted as signed', async (_how, escaped) => {
    const handled = Promise.withResolvers<unknown>()
    await using agent = await testAgent({
      handle: ({ text: received, caller }) => handled.resolve({ received, caller }),
      signatures: 'required',
    })
    agent.identityProvider.clients.set(did, { public_key: key.publicKeyBase58 })
    const token = agent.identityProvider.issue(did)
    const input = { url: agent.url, token, did, seed_hex: seed.toString('hex'), text, escaped }
    const child = promisify(execFile)(python as string, [program])
    child.child.stdin?.end(JSON.stringify(input))
    const { status, body } = JSON.parse((await child).stdout) as {
      status: number
      body: { result: WireTask }
    }
    expect([status, body]).toMatchObject([200, { result: { kind: 'task' } }])
    const request = await handled.promise
    expect(request).toEqual({ received: text, caller: { id: did, did, signed: true } })
  })
})
