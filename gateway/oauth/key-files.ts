import { generateKeyPairSync, hash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { link, mkdir, open, rm } from 'node:fs/promises'
import path from 'node:path'
import { readSecretFile } from '@parley/kit/process/secret-file'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'

const oauthKeys = z.object({
  jwks: z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) }),
  /** The first key signs, and all of them verify. */
  cookieKeys: z.array(z.string().min(32)).min(1),
})
export type OAuthKeys = z.infer<typeof oauthKeys>

/**
 * Loads the signing and cookie keys, or creates them on the first start.
 * @throws Error for an invalid file, ExposedSecretFile for a file that other users can read
 */
export async function loadOAuthKeys(keysDir: string): Promise<OAuthKeys> {
  const file = path.join(keysDir, 'oauth-keys.json')
  const parsed = oauthKeys.safeParse(jsonOf(await loadOrCreate(file, newOAuthKeys)))
  if (!parsed.success) throw new Error(`${file} is not a file of OAuth keys.`)
  return parsed.data
}

/** Loads the code with which a person approves an application. It has 100 random bits and is easy to read aloud. */
export function loadSignInCode(keysDir: string): Promise<string> {
  return loadSecret(path.join(keysDir, 'sign-in-code'), newSignInCode)
}

/** Loads the initial access token for registration (RFC 7591, section 3). */
export function loadInitialAccessToken(keysDir: string): Promise<string> {
  return loadSecret(path.join(keysDir, 'initial-access-token'), newSecret)
}

/** Hashes the secrets to identify them without revealing them. All gateways of one OAuth server have the same hash. */
export async function secretsFingerprint(keysDir: string): Promise<string> {
  const { jwks, cookieKeys } = await loadOAuthKeys(keysDir)
  const texts = [await loadSignInCode(keysDir), await loadInitialAccessToken(keysDir)]
  return hash('sha256', JSON.stringify([jwks.keys.map(({ kid }) => kid), cookieKeys, texts]), 'base64url')
}

/** Returns 256 random bits as text. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

async function loadSecret(file: string, make: () => string): Promise<string> {
  const text = (await loadOrCreate(file, make)).trim()
  if (text.length < 20) throw new Error(`${file} holds no secret of at least 20 characters.`)
  return text
}

async function loadOrCreate(file: string, make: () => string): Promise<string> {
  try {
    return await readSecretFile(file)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  const text = make()
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  // Linking a complete draft leaves no partial file after a crash and lets the first of two concurrent writers win.
  const draft = `${file}.${randomUUID()}`
  {
    await using handle = await open(draft, 'wx', 0o600)
    await handle.writeFile(`${text}\n`)
    await handle.sync()
  }
  try {
    await link(draft, file)
    return text
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    return await readSecretFile(file)
  } finally {
    await rm(draft, { force: true })
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function newOAuthKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'ES256', use: 'sig' }
  const keys: OAuthKeys = { jwks: { keys: [{ ...key, kty: 'EC' }] }, cookieKeys: [newSecret()] }
  return JSON.stringify(keys)
}

/** Returns a code in Crockford's base32 alphabet, which has no ambiguous characters. */
function newSignInCode(): string {
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const group = () => Array.from({ length: 5 }, () => alphabet[randomInt(alphabet.length)]).join('')
  return [group(), group(), group(), group()].join('-')
}
