import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { type Log, makeLog } from '@parley/kit/process/log'
import { ExposedSecretFile } from '@parley/kit/process/secret-file'
import { expect, onTestFinished, test } from 'vitest'
import { CipherKey } from './cipher-key.ts'
import { hasKeyRing, KeyRing, keyRingCollection, UnreadableRecord } from './key-ring.ts'
import { KeysRefused, MasterKey, type MasterKeySettings } from './master-key.ts'
import { GatewayKeys } from './open-keys.ts'

const fileOnly: MasterKeySettings = { current: undefined, previous: undefined }
const bytesOf = (fill: number) => new Uint8Array(32).fill(fill)
const variable = (current: number, previous?: number): MasterKeySettings => ({
  current: bytesOf(current),
  previous: previous === undefined ? undefined : bytesOf(previous),
})

async function newFolder(): Promise<string> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'parley-keys-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

async function setup() {
  const dataDir = await newFolder()
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log: Log = makeLog({ level: 'debug', name: 'test', destination })
  const documents = memoryDocuments()
  const open = (settings: MasterKeySettings = fileOnly, more: { documents?: DocumentDatabase } = {}) =>
    GatewayKeys.open({ dataDir, settings, documents, log, ...more })
  return { dataDir, documents, open, logged: () => lines.join(''), file: path.join(dataDir, 'master.key') }
}

const secret = {
  make: () => 'a secret that is long enough',
  isValid: (text: string) => text.includes('secret'),
}

/** A database that several gateways share. */
const shared = (documents: DocumentDatabase): DocumentDatabase => ({ ...documents, shared: true })

async function refusal(run: Promise<unknown>): Promise<string> {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(KeysRefused)
  return error instanceof Error ? error.message : ''
}

test('a gateway uses the key that another one with the same DATA_DIR creates during its start', async () => {
  const { documents, open, file } = await setup()
  let other: Promise<GatewayKeys> | undefined
  const late: DocumentDatabase = {
    ...documents,
    collection: (declaration) => {
      const collection = documents.collection(declaration)
      const get: typeof collection.get = async (key) => {
        other ??= open().then(async (keys) => {
          await keys.ring()
          return keys
        })
        await other
        return collection.get(key)
      }
      return { ...collection, get }
    },
  }
  const keys = await open(fileOnly, { documents: late })
  expect(keys.masters).toMatchObject({ file, current: { id: (await other)?.masters.current.id } })
})

test('a sealed text opens only with the same key and context, and only unchanged', () => {
  const key = new CipherKey(randomBytes(32))
  const sealed = key.seal('text \ud83d\ude00', 'a')
  expect(key.open(sealed, 'a')).toBe('text \ud83d\ude00')
  expect(key.seal('text', 'a')).not.toBe(key.seal('text', 'a'))
  expect(key.open(sealed, 'b')).toBeUndefined()
  expect(new CipherKey(randomBytes(32)).open(sealed, 'a')).toBeUndefined()
  const bytes = Buffer.from(sealed, 'base64url')
  for (let at = 0; at < bytes.byteLength; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(key.open(changed.toString('base64url'), 'a')).toBeUndefined()
  }
  for (const short of [
    '',
    'AA',
    bytes.subarray(0, 27).toString('base64url'),
    bytes.subarray(0, -1).toString('base64url'),
  ])
    expect(key.open(short, 'a')).toBeUndefined()
})

test('10,000 nonces are different', () => {
  const key = new CipherKey(randomBytes(32))
  const nonces = Array.from({ length: 10_000 }, () => key.seal('', '').slice(0, 16))
  expect(new Set(nonces).size).toBe(nonces.length)
})

test('the first start creates a master key with mode 0600 and logs where it is, without its content', async () => {
  const { open, file, logged } = await setup()
  const keys = await open()
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const text = (await readFile(file, 'utf8')).trim()
  expect(Buffer.from(text, 'base64')).toHaveLength(32)
  expect(logged()).toContain(file)
  expect(logged()).toContain('back it up separately')
  expect(logged()).not.toContain(text)
  const { sealed } = await keys.cipher.seal('{}', 'a')
  expect(await (await open()).cipher.open(sealed, 'a', 'record')).toBe('{}')
})

test('two gateways that start at once use one master key and one ring', async () => {
  const { open } = await setup()
  const [one, other] = await Promise.all([open(), open()])
  const [ours, theirs] = await Promise.all([one.ring(), other.ring()])
  expect(ours.summary).toEqual(theirs.summary)
  expect(await other.cipher.open((await one.cipher.seal('{}', 'a')).sealed, 'a', 'record')).toBe('{}')
})

test('without its master key, an encrypted store is refused and nothing is created', async () => {
  const { open, file, dataDir } = await setup()
  await (await open()).ring()
  await rm(file)
  const message = await refusal(open())
  expect(message).toContain('there is no master key')
  expect(message).toContain(`Restore ${file}`)
  expect(await readdir(dataDir)).toEqual([])
})

test('without its master key, an encrypted file is refused and nothing is created', async () => {
  const { open, file, dataDir } = await setup()
  await (await open()).files.loadOrCreate('a.json', secret)
  await rm(file)
  expect(await refusal(open(fileOnly, { documents: memoryDocuments() }))).toContain('there is no master key')
  expect(await readdir(dataDir)).toEqual(['oauth'])
})

test('another master key is refused with both ids, for the ring and for a file, and nothing is changed', async () => {
  const { open, documents, dataDir } = await setup()
  const keys = await open(variable(1))
  await keys.files.loadOrCreate('a.json', secret)
  const onlyFile = await refusal(open(variable(2), { documents: memoryDocuments() }))
  await keys.ring()
  const stored = await documents.collection(keyRingCollection).get({ name: 'oauth' })
  const fileText = await readFile(path.join(dataDir, 'oauth', 'a.json'), 'utf8')
  for (const message of [onlyFile, await refusal(open(variable(2)))]) {
    expect(message).toContain(new MasterKey(bytesOf(1)).id)
    expect(message).toContain(new MasterKey(bytesOf(2)).id)
    expect(message).toContain('PARLEY_MASTER_KEY')
  }
  expect(await documents.collection(keyRingCollection).get({ name: 'oauth' })).toEqual(stored)
  expect(await readFile(path.join(dataDir, 'oauth', 'a.json'), 'utf8')).toBe(fileText)
})

test.each(['', 'SEKRET', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64')])(
  'a damaged master key file (%j) is refused without its content',
  async (text) => {
    const { open, file } = await setup()
    await writeFile(file, text, { mode: 0o600 })
    const message = await refusal(open())
    expect(message).toContain(`${file} is damaged`)
    expect(message).not.toMatch(/SEKRET|AAAA/)
    expect(await readFile(file, 'utf8')).toBe(text)
  },
)

test('a master key file that other users can read is refused', async () => {
  const { open, file } = await setup()
  await open()
  await chmod(file, 0o640)
  await expect(open()).rejects.toThrow(ExposedSecretFile)
})

test.each(['', '{}', '{"format":2,"copies":{}}', 'SEKRET'])(
  'a damaged ring (%j) is refused',
  async (body) => {
    const { open, documents } = await setup()
    await (await open()).ring()
    await documents.collection(keyRingCollection).put({ name: 'oauth', body })
    expect(await refusal(open())).toMatch(/key ring .* is damaged.*backup/)
  },
)

test('a ring with a changed byte is refused', async () => {
  const { open, documents } = await setup()
  await (await open()).ring()
  const ring = documents.collection(keyRingCollection)
  const body = (await ring.get({ name: 'oauth' }))?.body ?? ''
  await ring.put({ name: 'oauth', body: body.replace(/.(?="\}\}$)/, (last) => (last === 'A' ? 'B' : 'A')) })
  await ring.put({ name: 'oauth', body: `${body.slice(0, -20)}AAAA${body.slice(-16)}` })
  expect(await refusal(open())).toMatch(/is damaged/)
})

test('a plaintext file is encrypted in place and keeps its value', async () => {
  const { open, dataDir } = await setup()
  const keys = await open()
  const file = path.join(dataDir, 'oauth', 'a.json')
  await keys.files.loadOrCreate('b.json', secret)
  await writeFile(file, 'an old secret\n', { mode: 0o600 })
  expect(await keys.files.loadOrCreate('a.json', secret)).toBe('an old secret')
  expect(await readFile(file, 'utf8')).toBe('an old secret\n')
  await keys.files.encryptPlaintext()
  for (let times = 0; times < 2; times += 1) {
    expect(await keys.files.loadOrCreate('a.json', secret)).toBe('an old secret')
    expect(await readFile(file, 'utf8')).toContain('encrypted file')
    expect(await readFile(file, 'utf8')).not.toContain('old')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  }
  await writeFile(file, await readFile(path.join(dataDir, 'oauth', 'b.json'), 'utf8'))
  expect(await refusal(keys.files.loadOrCreate('a.json', secret))).toContain(`${file} is damaged`)
})

test('data keys can be added while another gateway reads and writes', async () => {
  const { open, documents } = await setup()
  const [one, other] = [
    await open(variable(1), { documents: shared(documents) }),
    await open(variable(1), { documents: shared(documents) }),
  ]
  const before = await other.cipher.seal('{"a":1}', 'a')
  await (await one.ring()).addDataKey()
  const after = await one.cipher.seal('{"b":1}', 'b')
  expect(after.dataKey).not.toBe(before.dataKey)
  expect(await other.cipher.open(after.sealed, 'b', 'record')).toBe('{"b":1}')
  expect(await one.cipher.open(before.sealed, 'a', 'record')).toBe('{"a":1}')
  expect((await other.cipher.seal('{}', 'a')).dataKey).toBe(after.dataKey)
  await (await one.ring()).removeDataKeys([before.dataKey, after.dataKey])
  expect((await one.ring()).summary.keys.map(({ id }) => id)).toEqual([after.dataKey])
  await expect(one.cipher.open(before.sealed, 'a', 'record')).rejects.toThrow(UnreadableRecord)
})

test('concurrent changes of the ring by several gateways are all kept', async () => {
  const { open, documents } = await setup()
  const gateways = await Promise.all([1, 2, 3].map(() => open(variable(1), { documents: shared(documents) })))
  await Promise.all(gateways.map(async (keys) => (await keys.ring()).addDataKey()))
  const ring = await (await open(variable(1))).ring()
  expect(ring.summary.keys).toHaveLength(4)
})

test('plaintext is refused after `refusePlaintext`, and any other text always', async () => {
  const { open } = await setup()
  const ring = await (await open()).ring()
  expect(await ring.open('{"a":1}', 'a', 'record')).toBe('{"a":1}')
  await ring.refusePlaintext()
  for (const text of ['{"a":1}', 'SEKRET', '', 'parley1.', 'parley1.AAAAAAAA.AAAA']) {
    const error = await ring.open(text, 'a', 'OAuth Client').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(UnreadableRecord)
    expect(String(error)).toContain('(OAuth Client)')
    expect(String(error)).not.toContain('SEKRET')
  }
})

test('the master key file is replaced: the data stays readable, the earlier key is useless', async () => {
  const { open, file, dataDir, documents } = await setup()
  const keys = await open()
  const { sealed } = await keys.cipher.seal('{}', 'a')
  const value = await keys.files.loadOrCreate('a.json', secret)
  const before = await readFile(file, 'utf8')
  expect(await keys.replaceMaster()).toBe(true)
  expect(await readFile(file, 'utf8')).not.toBe(before)
  expect((await readdir(dataDir)).sort()).toEqual(['master.key', 'oauth'])
  for (const one of [keys, await open()]) {
    expect(await one.cipher.open(sealed, 'a', 'record')).toBe('{}')
    expect(await one.files.loadOrCreate('a.json', secret)).toBe(value)
    expect((await one.ring()).masterIds).toEqual([one.masters.current.id])
  }
  await writeFile(file, before)
  expect(await refusal(open())).toContain('Nothing was changed')
  expect(documents.shared).toBe(false)
})

test.each([
  'before the ring',
  'before the files',
  'before the file of the key',
  'before the earlier key is dropped',
])(
  'a replacement of the master key file that was interrupted %s is completed at the next start',
  async (moment) => {
    const { open, file, dataDir } = await setup()
    const keys = await open()
    const { sealed } = await keys.cipher.seal('{}', 'a')
    const value = await keys.files.loadOrCreate('a.json', secret)
    const moments = [
      'before the ring',
      'before the files',
      'before the file of the key',
      'before the earlier key is dropped',
    ]
    const step = moments.indexOf(moment)
    await writeFile(`${file}.next`, `${Buffer.alloc(32, 9).toString('base64')}\n`, { mode: 0o600 })
    const next = new MasterKey(bytesOf(9))
    const masters = { current: next, previous: keys.masters.current, source: file, file }
    if (step > 0) await (await keys.ring()).useMasters(masters)
    if (step > 1) await keys.files.useMasters(masters, false)
    if (step > 2) await writeFile(file, await readFile(`${file}.next`, 'utf8'))
    if (step > 2) await rm(`${file}.next`)
    const again = await open()
    expect(again.masters).toEqual({ current: expect.objectContaining({ id: next.id }), source: file, file })
    expect(await again.cipher.open(sealed, 'a', 'record')).toBe('{}')
    expect(await again.files.loadOrCreate('a.json', secret)).toBe(value)
    expect((await readdir(dataDir)).sort()).toEqual(['master.key', 'oauth'])
    expect((await (await open()).ring()).masterIds).toEqual([next.id])
  },
)

test('PARLEY_MASTER_KEY is replaced gateway by gateway', async () => {
  const { open, documents } = await setup()
  const on = (settings: MasterKeySettings) => open(settings, { documents: shared(documents) })
  const old = await on(variable(1))
  const { sealed } = await old.cipher.seal('{}', 'a')
  const value = await old.files.loadOrCreate('a.json', secret)
  expect(await old.replaceMaster()).toBe(false)
  const first = await on(variable(2, 1))
  // A gateway with the earlier key still runs and may restart, but cannot change the ring.
  expect(await (await on(variable(1))).cipher.open(sealed, 'a', 'record')).toBe('{}')
  expect(await refusal((await on(variable(1)).then((keys) => keys.ring())).addDataKey())).toContain(
    'being replaced',
  )
  const second = await on(variable(2, 1))
  expect(await second.replaceMaster()).toBe(true)
  for (const keys of [first, second, await on(variable(2))]) {
    expect(await keys.cipher.open(sealed, 'a', 'record')).toBe('{}')
    expect(await keys.files.loadOrCreate('a.json', secret)).toBe(value)
  }
  expect(await refusal(on(variable(1)))).toContain('Nothing was changed')
})

test('without records, nothing creates a ring: each gateway may have its own master key', async () => {
  const { open, documents } = await setup()
  const keys = await open(fileOnly)
  await keys.files.loadOrCreate('a.json', secret)
  expect(await keys.replaceMaster()).toBe(true)
  expect(await hasKeyRing(documents)).toBe(false)
  expect(await (await open()).files.loadOrCreate('a.json', secret)).toBe(secret.make())
})

test('a master key file is not replaced on a shared database, because other gateways have copies', async () => {
  const { open, documents, file } = await setup()
  const keys = await open(fileOnly, { documents: shared(documents) })
  const before = await readFile(file, 'utf8')
  expect(await keys.replaceMaster()).toBe(false)
  expect(await readFile(file, 'utf8')).toBe(before)
})

test('the ring contains neither the data keys nor the master key in plaintext', async () => {
  const { open, documents } = await setup()
  const ring = await (await open(variable(1))).ring()
  const stored = JSON.stringify(await documents.collection(keyRingCollection).get({ name: 'oauth' }))
  expect(stored).not.toContain(ring.summary.keys[0]?.id)
  expect(stored).not.toContain(Buffer.from(bytesOf(1)).toString('base64url'))
})

test('a key that is derived from a stored one is the same at all gateways and after rotations', async () => {
  const { open, documents } = await setup()
  const storeKey = new Uint8Array(32).fill(3)
  const keys = await open()
  const derived = await keys.secretKey(storeKey)
  expect(Buffer.from(derived)).toHaveLength(32)
  expect(Buffer.from(derived)).not.toEqual(Buffer.from(storeKey))
  await (await keys.ring()).addDataKey()
  await keys.replaceMaster()
  expect(await (await open()).secretKey(storeKey)).toEqual(derived)
  expect(await (await open(fileOnly, { documents: shared(documents) })).secretKey(storeKey)).toEqual(derived)
})

test('gateways on a shared database without a common master key use the stored key', async () => {
  const { open, documents } = await setup()
  const storeKey = new Uint8Array(32).fill(3)
  const own = await open(fileOnly, { documents: shared(documents) })
  expect(await own.secretKey(storeKey)).toBe(storeKey)
  expect(await hasKeyRing(documents)).toBe(false)
  const common = await open(variable(1), { documents: shared(memoryDocuments()) })
  expect(await common.secretKey(storeKey)).not.toEqual(storeKey)
})

test('a ring can be opened again with KeyRing only', async () => {
  const { documents, open } = await setup()
  const keys = await open(variable(1))
  const { sealed } = await keys.cipher.seal('{}', 'a')
  const ring = await KeyRing.open(documents, keys.masters)
  expect(await ring.open(sealed, 'a', 'record')).toBe('{}')
})
