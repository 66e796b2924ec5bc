import { randomUUID } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import type { DidDocument } from '@parley/kit/did/document'
import type { KeyPair } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { boundedText } from '@parley/kit/net/bounded-text'
import { readSecretFile } from '@parley/kit/process/secret-file'
import { jsonOf } from '@parley/wire/model/json-text'
import { request } from 'undici'
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

/** The OAuth server made no client for the agent. `message` is for the operator. */
export class ClientRefused extends Error {
  override readonly name = 'ClientRefused'
}

export interface OwnClientOptions {
  issuer: string
  /** `registration_endpoint` of the OAuth server. */
  endpoint: () => Promise<string>
  /** What the server wants to see of whoever registers. */
  initialToken: string | undefined
  did: string
  /** The key of now: it is registered, and signs that it is ours. */
  key: Pick<KeyPair, 'publicKeyBase58' | 'sign'>
  /** Every key so far, each signed by the one before it; absent while there was one alone. */
  keyHistory: DidDocument['keyHistory'] | undefined
  name: string
  /** Where the client is kept, mode 0600. */
  file: string
}

/**
 * The agent's own OAuth client (RFC 7591): named after its DID, with its key, made once and kept. After a rotation it is
 * told the new key (RFC 7592). Undefined: there is none, and no initial access token to make one with.
 * @throws Error when the server refuses, its text holds no secret; ExposedSecretFile
 */
export async function ownClient(options: OwnClientOptions): Promise<SuppliedClient | undefined> {
  const known = await storedClient(options)
  if (known === undefined && options.initialToken === undefined) return undefined
  const client =
    known === undefined
      ? await register(options)
      : known.public_key === options.key.publicKeyBase58
        ? known
        : await update(known, options)
  if (client !== known) await store(options.file, client)
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
  // Of another server, or of a key that was thrown away.
  return parsed.issuer === issuer && parsed.client_id === did ? parsed : undefined
}

async function register(options: OwnClientOptions): Promise<StoredClient> {
  const answer = await ask('POST', await options.endpoint(), options.initialToken ?? '', options)
  return readAnswer(answer, options)
}

async function update(known: StoredClient, options: OwnClientOptions): Promise<StoredClient> {
  const { client_secret, registration_access_token: token } = known
  const answer = await ask('PUT', known.registration_client_uri, token, options, { client_secret })
  return readAnswer({ ...known, ...answer }, options)
}

function metadataOf({ issuer, did, name, key, keyHistory }: OwnClientOptions) {
  return {
    // What is signed is for this server: another that we register at cannot do so in our name here.
    issuer,
    client_id: did,
    client_name: name,
    grant_types: ['client_credentials'],
    public_key: key.publicKeyBase58,
    // What the server believes another key by.
    key_history: keyHistory?.map(({ publicKeyBase58, signature }) => ({ publicKeyBase58, signature })),
  }
}

function readAnswer(answer: object, { did, issuer, key }: OwnClientOptions): StoredClient {
  const client = clientFile.safeParse({ ...answer, issuer, public_key: key.publicKeyBase58 }).data
  if (client?.client_id !== did) throw new Error('the OAuth server made no client of the agent’s DID')
  return client
}

/** Signed with the key that is registered, as any other request of the agent. */
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
  const answer = jsonOf(await boundedText(response.body)) as { error_description?: unknown } | undefined
  if (response.statusCode < 300 && typeof answer === 'object') return answer
  const why = typeof answer?.error_description === 'string' ? `: ${answer.error_description}` : ''
  throw new ClientRefused(
    `the OAuth server refused to register the agent (HTTP ${response.statusCode})${why}`,
  )
}

/** Whole or not at all, and readable by nobody else. */
async function store(file: string, client: StoredClient): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, `${JSON.stringify(client, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  await rename(draft, file)
}
