import { createPublicKey, verify } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keyPairFromSeed, loadOrCreateKeys } from './keys.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'parley-keys-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('the key is made on the first start, mode 0600, and is the same ever after', async () => {
  const file = path.join(folder, 'new', 'agent.key.json')
  const [first] = await loadOrCreateKeys(file)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await stat(path.dirname(file))).mode & 0o777).toBe(0o700)
  expect((await loadOrCreateKeys(file))[0].publicKeyBase58).toBe(first.publicKeyBase58)
})

test('two that start at the same time have one key', async () => {
  const file = path.join(folder, 'race.key.json')
  const all = await Promise.all(Array.from({ length: 8 }, () => loadOrCreateKeys(file)))
  expect(new Set(all.map(([key]) => key.publicKeyBase58)).size).toBe(1)
  expect((await readdir(folder)).filter((name) => name.startsWith('race'))).toEqual(['race.key.json'])
})

test('what it signs verifies as Ed25519', () => {
  const pair = keyPairFromSeed(new Uint8Array(32).fill(1))
  const message = Buffer.from('a message')
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(pair.publicKey).toString('base64url') },
    format: 'jwk',
  })
  expect(verify(null, message, key, pair.sign(message))).toBe(true)
  expect(verify(null, Buffer.from('another'), key, pair.sign(message))).toBe(false)
})

test.each([0, 31, 33, 64])('a seed of %i bytes is refused', (length) => {
  expect(() => keyPairFromSeed(new Uint8Array(length))).toThrow('32 bytes')
})

test.each([
  ['empty', ''],
  ['not JSON', '{"keys":[{"type":"Ed25519","seed":"c2VjcmV0LXNlZWQ"'],
  ['of no key', '{"keys":[]}'],
  ['of another type', '{"keys":[{"type":"RSA","seed":"c2VjcmV0LXNlZWQ"}]}'],
])('a key file that is %s is refused, stays as it is, and none of it is in the error', async (name, text) => {
  const file = path.join(folder, `${name}.json`)
  await writeFile(file, text)
  const error = await loadOrCreateKeys(file).then(
    String,
    (thrown: Error) => `${thrown.stack} ${thrown.message}`,
  )
  expect(error).toContain('is not a key file')
  expect(error).not.toContain('c2VjcmV0')
  expect(await readFile(file, 'utf8')).toBe(text)
})
