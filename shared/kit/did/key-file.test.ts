import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyDocument } from './document.ts'
import { agentIdentity } from './identity.ts'
import { loadOrCreateKeys, retireOldKeys, rotateKeys } from './key-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'parley-keys-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('the key is created on the first start with mode 0600 and reused afterwards', async () => {
  const file = path.join(folder, 'new', 'agent.key.json')
  const { key: first } = await loadOrCreateKeys(file)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await stat(path.dirname(file))).mode & 0o777).toBe(0o700)
  expect((await loadOrCreateKeys(file)).key.publicKeyBase58).toBe(first.publicKeyBase58)
})

test('a key file that others may read is rejected with the chmod command to run, and not changed', async () => {
  const file = path.join(folder, 'copied.key.json')
  await loadOrCreateKeys(file)
  await chmod(file, 0o644)
  for (const use of [loadOrCreateKeys, rotateKeys, retireOldKeys])
    await expect(use(file)).rejects.toThrow(`Run "chmod 600 ${file}"`)
  expect((await stat(file)).mode & 0o777).toBe(0o644)
  await chmod(file, 0o600)
  expect((await loadOrCreateKeys(file)).history).toHaveLength(1)
})

test('two processes that start concurrently use the same key', async () => {
  const file = path.join(folder, 'race.key.json')
  const all = await Promise.all(Array.from({ length: 8 }, () => loadOrCreateKeys(file)))
  expect(new Set(all.map(({ key }) => key.publicKeyBase58)).size).toBe(1)
  expect((await readdir(folder)).filter((name) => name.startsWith('race'))).toEqual(['race.key.json'])
})

test.each([
  ['empty', ''],
  ['not JSON', '{"keys":[{"type":"Ed25519","seed":"c2VjcmV0LXNlZWQ"'],
  ['without keys', '{"keys":[]}'],
  ['of another type', '{"keys":[{"type":"RSA","seed":"c2VjcmV0LXNlZWQ"}]}'],
])('a key file that is %s is rejected unchanged with an error that omits its content', async (name, text) => {
  const file = path.join(folder, `${name}.json`)
  await writeFile(file, text, { mode: 0o600 })
  const error = await loadOrCreateKeys(file).then(
    String,
    (thrown: Error) => `${thrown.stack} ${thrown.message}`,
  )
  expect(error).toContain('is not a key file')
  expect(error).not.toContain('c2VjcmV0')
  expect(await readFile(file, 'utf8')).toBe(text)
})

test('after a rotation, the new key signs, the old key is listed until it is retired, and the DID does not change', async () => {
  const file = path.join(folder, 'rotating.key.json')
  const first = await agentIdentity('alice', file)
  const { key } = await rotateKeys(file)
  const rotated = await agentIdentity('alice', file)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(rotated.did).toBe(first.did)
  expect(rotated.key.publicKeyBase58).toBe(key.publicKeyBase58)
  expect(verifyDocument(rotated.document, first.did)).toEqual([
    first.key.publicKeyBase58,
    key.publicKeyBase58,
  ])
  const { key: third } = await rotateKeys(file)
  await retireOldKeys(file)
  const retired = await agentIdentity('alice', file)
  expect(verifyDocument(retired.document, first.did)).toEqual([third.publicKeyBase58])
  expect(retired.document.keyHistory).toHaveLength(3)
  expect((await readFile(file, 'utf8')).match(/"seed"/g)).toHaveLength(1)
  await rotateKeys(file)
  expect(verifyDocument((await agentIdentity('alice', file)).document, first.did)).toHaveLength(2)
  expect((await readdir(folder)).filter((name) => name.startsWith('rotating'))).toEqual(['rotating.key.json'])
})

test('a key file whose last key is retired is rejected', async () => {
  const file = path.join(folder, 'none-left.json')
  const text = JSON.stringify({ keys: [{ type: 'Ed25519', retired: true, public_key: 'x' }] })
  await writeFile(file, text, { mode: 0o600 })
  await expect(loadOrCreateKeys(file)).rejects.toThrow('contains no signing key')
})
