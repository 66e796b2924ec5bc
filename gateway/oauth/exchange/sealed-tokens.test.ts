import { expect, test } from 'vitest'
import { type ExchangedClaims, SealedTokens } from './sealed-tokens.ts'

const secret = 'a'.repeat(43)
const next = 'b'.repeat(43)
const claims: ExchangedClaims = {
  jti: 'j1',
  clientId: 'did:key:alice',
  sub: 'did:key:alice',
  scope: 'agent:read agent:write',
  aud: 'did:key:agent',
  actors: ['https://gateway.example'],
  iat: 1_800_000_000,
  exp: 1_800_000_300,
  ancestors: [],
  root: { model: 'ClientCredentials', id: 'hash', exp: 1_800_003_600 },
}

test('a sealed token opens to its claims and shows none of them', () => {
  const token = new SealedTokens([secret]).seal(claims)
  expect(token).toMatch(/^pxt_[\w-]+$/)
  expect(Buffer.from(token.slice(4), 'base64url').toString('latin1')).not.toContain('alice')
  expect(new SealedTokens([secret]).open(token)).toEqual(claims)
})

test('two tokens with the same claims differ', () => {
  const tokens = new SealedTokens([secret])
  expect(tokens.seal(claims)).not.toBe(tokens.seal(claims))
})

test('after a rotation, older tokens open while their secret is listed', () => {
  const old = new SealedTokens([secret]).seal(claims)
  const rotated = new SealedTokens([next, secret])
  expect(rotated.open(old)).toEqual(claims)
  expect(new SealedTokens([next]).open(old)).toBeUndefined()
  expect(new SealedTokens([secret]).open(rotated.seal(claims))).toBeUndefined()
})

test('a changed, truncated or extended token does not open', () => {
  const tokens = new SealedTokens([secret])
  const token = tokens.seal(claims)
  const bytes = Buffer.from(token.slice(4), 'base64url')
  for (let at = 0; at < bytes.byteLength; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(tokens.open(`pxt_${changed.toString('base64url')}`)).toBeUndefined()
    expect(tokens.open(`pxt_${bytes.subarray(0, at).toString('base64url')}`)).toBeUndefined()
  }
  for (const text of [
    `${token}A`,
    `${token}=`,
    `${token} `,
    token.slice(4),
    'pxt_',
    `pxt_${'A'.repeat(8000)}`,
  ])
    expect(tokens.open(text)).toBeUndefined()
})

test('the last character of a token has one form only', () => {
  const tokens = new SealedTokens([secret])
  const token = tokens.seal({ ...claims, jti: 'j'.repeat(2) })
  const others = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.split('')
  const opened = others.filter((last) => tokens.open(token.slice(0, -1) + last) !== undefined)
  expect(opened).toEqual([token.at(-1)])
})

test('claims that do not fit into a token are refused', () => {
  const large = { ...claims, aud: `https://agent.example/${'x'.repeat(5000)}` }
  expect(() => new SealedTokens([secret]).seal(large)).toThrow(RangeError)
})
