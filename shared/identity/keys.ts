import { randomBytes, randomUUID } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import bs58 from 'bs58'
import nacl from 'tweetnacl'
import { z } from 'zod'
import { signerOf } from './ed25519.ts'

/** An Ed25519 key pair. The seed never leaves its file and this object. */
export interface KeyPair {
  publicKey: Uint8Array
  publicKeyBase58: string
  sign(bytes: Uint8Array): Uint8Array
}

const seedBytes = 32
const keyFile = z.object({
  /** Oldest first; the last one signs. */
  keys: z.array(z.object({ type: z.literal('Ed25519'), seed: z.string() })).min(1),
})

/** @throws Error when the seed has not 32 bytes. */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  if (seed.byteLength !== seedBytes) throw new Error(`An Ed25519 seed has ${seedBytes} bytes.`)
  const pair = nacl.sign.keyPair.fromSeed(seed)
  return {
    publicKey: pair.publicKey,
    publicKeyBase58: bs58.encode(pair.publicKey),
    sign: signerOf(seed),
  }
}

/** The keys of the file, oldest first; made with one new key (mode 0600) when the file is not there yet. */
export async function loadOrCreateKeys(file: string): Promise<[KeyPair, ...KeyPair[]]> {
  const text = (await readIfThere(file)) ?? (await createKeyFile(file))
  const parsed = keyFile.safeParse(parseQuietly(text))
  if (!parsed.success) throw new Error(`${file} is not a key file.`)
  const pairs = parsed.data.keys.map((key) => keyPairFromSeed(Buffer.from(key.seed, 'base64url')))
  return pairs as [KeyPair, ...KeyPair[]]
}

async function createKeyFile(file: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  const seed = randomBytes(seedBytes).toString('base64url')
  const text = `${JSON.stringify({ keys: [{ type: 'Ed25519', seed }] })}\n`
  // Whole or not at all, and never over another: a process may be killed here, and two may start together.
  const whole = `${file}.${randomUUID()}`
  try {
    await writeSecret(whole, text)
    await link(whole, file)
    return text
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return readFile(file, 'utf8')
  } finally {
    await rm(whole, { force: true })
  }
}

async function writeSecret(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The text of a broken key file must not reach a log by way of the parser's message. */
function parseQuietly(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
