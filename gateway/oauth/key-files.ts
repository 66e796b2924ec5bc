import { generateKeyPairSync, hash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import path from 'node:path'
import { createSecretFile, readSecretFileIfExists } from '@parley/kit/process/secret-file'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import type { SecretFiles } from '../keys/secret-files.ts'

const oauthKeys = z.object({
  jwks: z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) }),
  /** The first key signs, and all of them verify. */
  cookieKeys: z.array(z.string().min(32)).min(1),
})
export type OAuthKeys = z.infer<typeof oauthKeys>

/**
 * Loads the signing and cookie keys from their encrypted file, or creates them on the first start.
 * @throws KeysRefused for an invalid file, ExposedSecretFile for a file that other users can read
 */
export async function loadOAuthKeys(files: SecretFiles): Promise<OAuthKeys> {
  const isValid = (text: string) => oauthKeys.safeParse(jsonOf(text)).success
  return oauthKeys.parse(jsonOf(await files.loadOrCreate('oauth-keys.json', { make: newOAuthKeys, isValid })))
}

const statementKeys = z.object({
  keys: z
    .array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        d: z.string(),
        kid: z.string(),
      }),
    )
    .min(1),
})
export type StatementKey = z.infer<typeof statementKeys>['keys'][number]

/**
 * Loads the keys that sign the gateway's statements from their encrypted file, or creates one on the first start. The
 * first key signs.
 * @throws KeysRefused for an invalid file, ExposedSecretFile for a file that other users can read
 */
export async function loadStatementKeys(files: SecretFiles): Promise<StatementKey[]> {
  const isValid = (text: string) => statementKeys.safeParse(jsonOf(text)).success
  const text = await files.loadOrCreate('statement-keys.json', { make: newStatementKeys, isValid })
  return statementKeys.parse(jsonOf(text)).keys
}

/**
 * Loads the code with which a person approves an application. It has 100 random bits and is easy to read aloud. The file
 * is not encrypted, because people read it.
 */
export function loadSignInCode(keysDir: string): Promise<string> {
  return loadSecret(path.join(keysDir, 'sign-in-code'), newSignInCode)
}

/**
 * Loads the initial access token for registration (RFC 7591, section 3). The file is not encrypted, because people and
 * programs read it.
 */
export function loadInitialAccessToken(keysDir: string): Promise<string> {
  return loadSecret(path.join(keysDir, 'initial-access-token'), newSecret)
}

/** Hashes the secrets to identify them without revealing them. All gateways of one OAuth server have the same hash. */
export async function secretsFingerprint(files: SecretFiles): Promise<string> {
  const { jwks, cookieKeys } = await loadOAuthKeys(files)
  const texts = [await loadSignInCode(files.dir), await loadInitialAccessToken(files.dir)]
  return hash('sha256', JSON.stringify([jwks.keys.map(({ kid }) => kid), cookieKeys, texts]), 'base64url')
}

/** Returns 256 random bits as text. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

async function loadSecret(file: string, make: () => string): Promise<string> {
  const text = (await readSecretFileIfExists(file)) ?? (await createSecretFile(file, `${make()}\n`))
  if (text.trim().length < 20) throw new Error(`${file} holds no secret of at least 20 characters.`)
  return text.trim()
}

function newOAuthKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'ES256', use: 'sig' }
  const keys: OAuthKeys = { jwks: { keys: [{ ...key, kty: 'EC' }] }, cookieKeys: [newSecret()] }
  return JSON.stringify(keys)
}

function newStatementKeys(): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  return JSON.stringify({ keys: [{ ...privateKey.export({ format: 'jwk' }), kid: randomUUID() }] })
}

/** Returns a code in Crockford's base32 alphabet, which has no ambiguous characters. */
export function newSignInCode(): string {
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const group = () => Array.from({ length: 5 }, () => alphabet[randomInt(alphabet.length)]).join('')
  return [group(), group(), group(), group()].join('-')
}
