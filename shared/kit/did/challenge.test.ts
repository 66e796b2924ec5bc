import { expect, test } from 'vitest'
import { answerChallenge, type Challenge, verifyAnswer } from './challenge.ts'
import { type KeyPair, keyPairFromSeed } from './keys.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const did = 'did:parley:alice:agent:11111111-2222-4333-8444-555555555555'
const challenge: Challenge = {
  nonce: Buffer.alloc(32, 5).toString('base64url'),
  gateway: 'https://gateway.example',
  url: 'https://agent.example',
}

test('an answer is valid for its challenge', () => {
  const answer = answerChallenge(challenge, did, key)
  expect(verifyAnswer(challenge, answer, key.publicKeyBase58)).toBe(true)
})

test.each<[string, Partial<Challenge>]>([
  ['another nonce', { nonce: Buffer.alloc(32, 6).toString('base64url') }],
  ['another gateway', { gateway: 'https://mallory.example' }],
  ['another address', { url: 'https://mallory.example' }],
  ['fields with shifted boundaries', { gateway: 'https://gateway.example","https', url: '//agent.example' }],
])('an answer is invalid for %s', (_what, changes) => {
  const answer = answerChallenge(challenge, did, key)
  expect(verifyAnswer({ ...challenge, ...changes }, answer, key.publicKeyBase58)).toBe(false)
})

test.each<[string, object]>([
  ['another DID', { did: 'did:parley:bob:agent:11111111-2222-4333-8444-555555555555' }],
  ['another key', { key: keyPairFromSeed(Buffer.alloc(32, 2)).publicKeyBase58 }],
  ['a malformed signature', { signature: 'O0Il' }],
  ['an endless signature', { signature: '4'.repeat(100_000) }],
])('an answer with %s is invalid', (_what, changes) => {
  const answer = { ...answerChallenge(challenge, did, key), ...changes }
  expect(verifyAnswer(challenge, answer, key.publicKeyBase58)).toBe(false)
})

test('a text signed by an agent is never a valid answer', () => {
  let signed = Buffer.alloc(0)
  const watched: KeyPair = { ...key, sign: (bytes) => key.sign((signed = Buffer.from(bytes))) }
  answerChallenge(challenge, did, watched)
  expect(Buffer.from(signed.toString('utf8'))).not.toEqual(signed)
})
