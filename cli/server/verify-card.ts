import { boundedText } from '@parley/kit/net/bounded-text'
import { connectionFault } from '@parley/kit/net/connection-fault'
import { commonCardPath } from '@parley/wire/codecs/a2a-card'
import { extensionUris } from '@parley/wire/codecs/extensions'
import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { CommandFailed, UsageError } from '../terminal/faults.ts'

/** The statements of a card and the result of verifying its signature. */
export interface CheckedCard {
  url: string
  name: string
  /** The DID URL of the key; absent if no signature is valid. */
  signedBy?: string
  covers?: string
  /** Why the card is not verified, as a sentence. */
  fault?: string
  /** The params of the gateway's extension (spec/extensions.md#vouched-card). */
  vouched?: JsonObject
}

const limitMs = 10_000
const answerMaxBytes = 1024 * 1024

/**
 * Reads an agent's card and verifies its signature. Keys come from the document of the DID that signed: a DID of Parley is
 * resolved at the server of the card.
 * @param given address of a card or of an agent
 * @throws UsageError, CommandFailed
 */
export async function checkCard(given: string): Promise<CheckedCard> {
  if (!/^https?:$/.test(URL.parse(given)?.protocol ?? ''))
    throw new UsageError(`--card must be an http or https address, not "${given}".`)
  const url = given.endsWith('.json') ? given : given.replace(/\/+$/, '') + commonCardPath
  const card = await read(url)
  if (card === undefined) throw new CommandFailed(`${url} serves no agent card.`)
  const agent = url.replace(/(\/a2a\/v[\d.]+)?\/\.well-known\/[^/]*$/, '')
  const { verifyCardProof } = await import('@parley/gateway/registration/card-proof')
  const proof = await verifyCardProof(card, { url: agent, resolve: await resolverAt(agent) })
  const vouched = vouchedIn(card)
  return {
    url,
    name: typeof card['name'] === 'string' ? card['name'] : '',
    ...(proof.verified ? { signedBy: proof.kid, covers: proof.covers } : { fault: proof.message }),
    ...(vouched !== undefined && { vouched }),
  }
}

/** Resolves DIDs of Parley at the agent and at the gateway that serves it, and others by their method. */
export async function resolverAt(agent: string): Promise<(did: string) => Promise<JsonObject | undefined>> {
  const servers = new Set([agent, agent.replace(/\/agents\/[^/]+$/, '')])
  const { DidDocuments } = await import('@parley/gateway/did/did-documents')
  const others = new DidDocuments({
    own: () => undefined,
    readExternal: async (url) => {
      const document = await read(url)
      if (document === undefined) throw new Error(`${url} serves no JSON object`)
      return document
    },
  })
  return async (did) => {
    if (!did.startsWith('did:parley:')) return others.resolve(did)
    for (const server of servers) {
      const document = await read(`${server}/did/resolve?did=${encodeURIComponent(did)}`)
      if (document !== undefined) return document
    }
    return undefined
  }
}

/** Returns the JSON object at the address; undefined if there is none. @throws CommandFailed if there is no response */
async function read(url: string): Promise<JsonObject | undefined> {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(limitMs) })
    const text = await boundedText(response.body, answerMaxBytes)
    return response.status === 200 ? jsonObjectOf(text) : undefined
  } catch (error) {
    const why = error instanceof Error ? (connectionFault(error, url) ?? error.message) : String(error)
    throw new CommandFailed(`${url} does not respond: ${why}.`)
  }
}

function vouchedIn({ capabilities }: JsonObject): JsonObject | undefined {
  const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : []
  const list = Array.isArray(extensions) ? extensions.filter(isJsonObject) : []
  const params = list.find(({ uri }) => uri === extensionUris.vouchedCard)?.['params']
  return isJsonObject(params) ? params : undefined
}
