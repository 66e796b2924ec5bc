import { parseEnv } from 'node:util'
import { gatewayConfig } from '@parley/gateway/config'
import { type GatewayIdentitySettings, gatewayIdentity, signingKeyId } from '@parley/kit/did/identity'
import { Voucher, verifyProof } from '@parley/kit/did/vouch'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

type Env = Record<string, string>

async function did(env: Env, ...argv: string[]) {
  using empty = temporaryFolder()
  return runCli(['did', ...argv], { cwd: empty.path, env })
}

/** Returns the settings after replacing those that a command printed. */
async function after(env: Env, ...argv: string[]): Promise<Env> {
  const said = await did(env, ...argv)
  expect(said).toMatchObject({ code: 0 })
  return { ...env, ...(parseEnv(said.stdout) as Env) }
}

const settingsOf = (env: Env) => gatewayConfig(env).secrets.identity as GatewayIdentitySettings

function proofOf(env: Env): Promise<string> {
  const settings = settingsOf(env)
  const identity = gatewayIdentity(settings)
  const voucher = new Voucher({ did: identity.did, seed: settings.seed, kid: signingKeyId(identity) })
  return voucher.sign({ sub: null, keys: [], url: '', card_hash: '', verified: true })
}

const documentOf = (env: Env) => gatewayIdentity(settingsOf(env)).document
const kidOf = (proof: string) =>
  (JSON.parse(Buffer.from(proof.split('.')[0] ?? '', 'base64url').toString()) as { kid: string }).kid

test('a rotated document keeps its DID and lists both keys until the old one is retired', async () => {
  const one = await after({}, 'new', '--gateway')
  const two = await after(one, 'rotate', '--gateway')
  const three = await after(two, 'rotate', '--gateway')
  const left = await after(three, 'retire', '--gateway')
  const documents = [one, two, three, left].map(documentOf)
  expect(new Set(documents.map(({ id }) => id)).size).toBe(1)
  expect(documents.map(({ authentication }) => authentication.map(({ id }) => id.split('#')[1]))).toEqual([
    ['key-1'],
    ['key-1', 'key-2'],
    ['key-1', 'key-2', 'key-3'],
    ['key-3'],
  ])
  expect(documentOf(left)).toEqual(documentOf({ ...left }))
  expect((await did(left)).stdout).toMatch(/key-1 .* retired\n.*key-2 .* retired\n.*key-3 .* signs/)
})

test('proofs are signed with the newest key, and proofs by the old key are valid until it is retired', async () => {
  const one = await after({}, 'new', '--gateway')
  const two = await after(one, 'rotate', '--gateway')
  const retired = await after(two, 'retire', '--gateway')
  const [old, fresh] = [await proofOf(one), await proofOf(retired)]
  expect([old, fresh].map((proof) => kidOf(proof).split('#')[1])).toEqual(['key-1', 'key-2'])
  for (const proof of [old, fresh])
    expect((await verifyProof(proof, documentOf(two))).iss).toBe(documentOf(one).id)
  expect((await verifyProof(fresh, documentOf(retired))).iss).toBe(documentOf(one).id)
  await expect(verifyProof(old, documentOf(retired))).rejects.toThrow('not made with a key of this document')
})

test('all gateways list a new key before one of them signs with it', async () => {
  const one = await after({}, 'new', '--gateway')
  const two = await after(one, 'rotate', '--gateway')
  const between = { ...one, SERVICE_GATEWAY_DID_KEYS: two['SERVICE_GATEWAY_DID_KEYS'] ?? '' }
  expect(documentOf(between)).toEqual(documentOf(two))
  expect(kidOf(await proofOf(between))).toMatch(/#key-1$/)
  expect((await did(between)).stdout).toMatch(/key-1 .* signs\n.*key-2 .* listed/)
  for (const action of ['rotate', 'retire'])
    expect(await did(between, action, '--gateway')).toMatchObject({ code: 1, stdout: '' })
})

test('with CARD_ES256, gateways with the old and the new seed list the P-256 keys of both', async () => {
  const one = await after({ CARD_ES256: 'yes' }, 'new', '--gateway')
  const two = await after(one, 'rotate', '--gateway')
  const between = { ...one, SERVICE_GATEWAY_DID_KEYS: two['SERVICE_GATEWAY_DID_KEYS'] ?? '' }
  const cardKeysOf = (env: Env) =>
    (documentOf(env).assertionMethod ?? []).flatMap((key) => (typeof key === 'string' ? [] : [key.id]))
  const { id } = documentOf(one)
  expect(cardKeysOf(one)).toEqual([`${id}#key-1-es256`])
  expect(cardKeysOf(between)).toEqual([`${id}#key-1-es256`, `${id}#key-2-es256`])
  expect(documentOf(between)).toEqual(documentOf(two))
  // The settings stay complete on a gateway that does not sign with ES256 itself.
  expect(documentOf({ ...two, CARD_ES256: 'no' })).toEqual(documentOf(two))
  const left = await after(two, 'retire', '--gateway')
  expect(cardKeysOf(left)).toEqual([`${id}#key-2-es256`])
  expect((await did(two)).stdout).toMatch(/key-1 .* listed, ES256\n.*key-2 .* signs, ES256/)
})

test('neither the printed key list nor the retirement of keys reveals a seed', async () => {
  const one = await after({}, 'new', '--gateway')
  const said = await did(one, 'rotate', '--gateway')
  const keys = (parseEnv(said.stdout) as Env)['SERVICE_GATEWAY_DID_KEYS'] ?? ''
  expect(keys.split(',')).toHaveLength(2)
  const retired = await did({ ...one, ...(parseEnv(said.stdout) as Env) }, 'retire', '--gateway')
  expect(Object.keys(parseEnv(retired.stdout))).toEqual(['SERVICE_GATEWAY_DID_KEYS'])
})

test('settings from different key histories are rejected at startup in one sentence', async () => {
  const one = await after({}, 'new', '--gateway')
  const two = await after(one, 'rotate', '--gateway')
  const retired = await after(two, 'retire', '--gateway')
  const another = await after(await after({}, 'new', '--gateway'), 'rotate', '--gateway')
  const keys = (env: Env) => env['SERVICE_GATEWAY_DID_KEYS'] ?? ''
  const [firstOfOne = ''] = keys(two).split(',')
  const [, secondOfAnother = ''] = keys(another).split(',')
  const cases: [Env, RegExp][] = [
    [{ SERVICE_GATEWAY_DID_KEYS: keys(two) }, /identity is incomplete: set .*DID_SEED/],
    [{ ...two, SERVICE_GATEWAY_DID_KEYS: 'x' }, /DID_KEYS must be .*not a list of keys/],
    [{ ...two, SERVICE_GATEWAY_DID_KEYS: keys(another) }, /DID_KEYS must be .* not one of the valid keys/],
    [{ ...one, SERVICE_GATEWAY_DID_KEYS: keys(retired) }, /DID_KEYS must be .* not one of the valid keys/],
    [
      { ...two, SERVICE_GATEWAY_DID_KEYS: `${firstOfOne},${secondOfAnother}` },
      /not signed by the one before/,
    ],
  ]
  for (const [env, sentence] of cases) expect(() => gatewayConfig(env)).toThrow(sentence)
})

test.each([
  [['rotate', 'hello', '--gateway'], 2],
  [['rotate', '--gateway'], 1],
  [['retire', '--gateway'], 1],
])('without an identity or with both an agent and --gateway, did %j exits with %i', async (argv, code) => {
  expect(await did({}, ...argv)).toMatchObject({ code, stdout: '' })
})
