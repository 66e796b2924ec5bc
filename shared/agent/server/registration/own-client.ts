import { randomUUID } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import type { DidDocument } from '@parley/kit/did/document'
import type { KeyPair } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { boundedText } from '@parley/kit/net/bounded-text'
import { request } from '@parley/kit/net/http-client'
import { readSecretFile } from '@parley/kit/process/secret-file'
import { jsonObjectOf, jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import type { SuppliedClient } from './supervisor-channel.ts'

const clientFile = z.object({
  client_id: z.string().min(1),
  client_secret: z.string().min(1),
  public_key: z.string(),
  issuer: z.string(),
  registration_client_uri: z.url(),
  registration_access_token: z.string().min(1),
})
type StoredClient = z.infer<typeof clientFile>

/** The OAuth server refused to register a client for the agent. `message` is for the operator. */
export class ClientRefused extends Error {
  override readonly name = 'ClientRefused'
}

export interface OwnClientOptions {
  issuer: string
  /** Returns the `registration_endpoint` of the OAuth server. */
  endpoint: () => Promise<string>
  /** OAUTH_INITIAL_TOKEN, the OAuth server's initial access token. */
  initialToken: string | undefined
  did: string
  /** The current key, which is registered and signs the request. */
  key: Pick<KeyPair, 'publicKeyBase58' | 'sign'>
  /** All keys so far, each signed by the previous key; undefined before the first rotation. */
  keyHistory: DidDocument['keyHistory'] | undefined
  name: string
  /** The file that stores the client, with mode 0600. */
  file: string
}

/**
 * Returns the agent's OAuth client (RFC 7591), which has the agent's DID as its ID. It is registered once; after a key rotation,
 * its key is updated (RFC 7592). Returns undefined without a stored client and without an initial access token.
 * @throws ClientRefused when the server refuses, with a message that contains no secret; ExposedSecretFile
 */
export async function ownClient(options: OwnClientOptions): Promise<SuppliedClient | undefined> {
  const stored = await storedClient(options)
  if (stored === undefined && options.initialToken === undefined) return undefined
  const client =
    stored === undefined
      ? await register(options)
      : stored.public_key === options.key.publicKeyBase58
        ? stored
        : await update(stored, options)
  if (client !== stored) await store(options.file, client)
  return { clientId: client.client_id, clientSecret: client.client_secret }
}

async function storedClient({ file, issuer, did }: OwnClientOptions): Promise<StoredClient | undefined> {
  const text = await readSecretFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const parsed = clientFile.safeParse(jsonOf(text)).data
  if (parsed === undefined) throw new Error(`${file} is not a client file`)
  // A file for another server or for an identity with a deleted key is ignored.
  return parsed.issuer === issuer && parsed.client_id === did ? parsed : undefined
}

async function register(options: OwnClientOptions): Promise<StoredClient> {
  const answer = await ask('POST', await options.endpoint(), options.initialToken ?? '', options)
  return readAnswer(answer, options)
}

async function update(stored: StoredClient, options: OwnClientOptions): Promise<StoredClient> {
  const { client_secret, registration_access_token: token } = stored
  const answer = await ask('PUT', stored.registration_client_uri, token, options, { client_secret })
  return readAnswer({ ...stored, ...answer }, options)
}

function metadataOf({ issuer, did, name, key, keyHistory }: OwnClientOptions) {
  return {
    // The signature covers the issuer, so that another server cannot replay the request to this issuer.
    issuer,
    client_id: did,
    client_name: name,
    grant_types: ['client_credentials'],
    public_key: key.publicKeyBase58,
    // This proves that a new key belongs to the same identity.
    key_history: keyHistory?.map(({ publicKeyBase58, signature }) => ({ publicKeyBase58, signature })),
  }
}

function readAnswer(answer: object, { did, issuer, key }: OwnClientOptions): StoredClient {
  const client = clientFile.safeParse({ ...answer, issuer, public_key: key.publicKeyBase58 }).data
  if (client?.client_id !== did)
    throw new Error('the OAuth server did not return a client with the DID of the agent')
  return client
}

/** Sends a request signed with the agent's key. @throws ClientRefused */
async function ask(
  method: 'POST' | 'PUT',
  url: string,
  token: string,
  options: OwnClientOptions,
  more: object = {},
): Promise<object> {
  const body = JSON.stringify({ ...metadataOf(options), ...more })
  const signature = signRequest({ did: options.did, key: options.key, body })
  const response = await request(url, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...signature },
    body,
    headersTimeout: 5000,
    bodyTimeout: 5000,
  })
  const answer = jsonObjectOf(await boundedText(response.body))
  if (response.statusCode < 300 && answer !== undefined) return answer
  const description = answer?.['error_description']
  const why = typeof description === 'string' ? `: ${description}` : ''
  throw new ClientRefused(
    `the OAuth server refused to register the agent (HTTP ${response.statusCode})${why}`,
  )
}

/** Writes the file atomically; only its owner can read it. */
async function store(file: string, client: StoredClient): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, `${JSON.stringify(client, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  await rename(draft, file)
}
