import type { KeyObject } from 'node:crypto'
import {
  type CardAlgorithm,
  type CardFault,
  type CardVerdict,
  cardKeysOf,
  verifyCard,
} from '@parley/kit/did/card-signature'
import { isDid } from '@parley/kit/did/did'
import { cardAddresses } from '@parley/wire/codecs/signed-card'
import type { JsonObject } from '@parley/wire/model/task'
import { didWebUrl } from '../did/did-web.ts'
import { signingKeyIn } from './agent-document.ts'

/** `message` is a sentence for the operator. */
export type CardProof =
  | { verified: true; did: string; kid: string; covers: Verified['covers'] }
  | { verified: false; reason: CardFault | 'other_origin' | 'other_address'; message: string }

type Verified = Extract<CardVerdict, { verified: true }>

export interface CardProofOptions {
  /** The address at which the agent is registered. */
  url: string
  /** The address in the card at which the agent is called, which the signature must cover. Undefined if it is not called. */
  interfaceUrl?: string
  /** Resolves a DID; undefined if its document is not found. */
  resolve: (did: string) => Promise<JsonObject | undefined>
}

/**
 * Verifies the signatures in the card of an agent that cannot prove the key of a DID by itself. A signature counts if its key
 * speaks for the address: that of a did:web at the same origin, or that of another DID if the signed card lists an interface at
 * the same origin. Otherwise, an agent could show a copy of another agent's card. Never throws.
 */
export async function verifyCardProof(
  card: JsonObject,
  { url, interfaceUrl, resolve }: CardProofOptions,
): Promise<CardProof> {
  const verdict = await verifyCard(card, (kid, alg) => keyOf(kid, alg, resolve))
  if (!verdict.verified) return verdict
  const { kid, covers } = verdict
  const did = didOf(kid)
  const addresses = cardAddresses(card, covers)
  if (interfaceUrl !== undefined && !addresses.includes(interfaceUrl)) {
    const message = `The signature does not cover the address ${interfaceUrl}.`
    return { verified: false, reason: 'other_address', message }
  }
  if (did.startsWith('did:web:')) {
    if (isWithin(url, didWebUrl(did.slice('did:web:'.length)))) return { verified: true, did, kid, covers }
    const message = `The card is signed by ${did}, which does not speak for ${url}.`
    return { verified: false, reason: 'other_origin', message }
  }
  if (addresses.some((address) => URL.parse(address)?.origin === URL.parse(url)?.origin))
    return { verified: true, did, kid, covers }
  const message = `The card is signed by ${did} and lists no interface at ${url}.`
  return { verified: false, reason: 'other_address', message }
}

async function keyOf(
  kid: string,
  alg: CardAlgorithm,
  resolve: CardProofOptions['resolve'],
): Promise<KeyObject | undefined> {
  const did = didOf(kid)
  if (!isDid(did)) return undefined
  const document = await resolve(did)
  if (document === undefined) return undefined
  if (did.startsWith('did:parley:')) return cardKeysOf(document, did)(kid, alg)
  return signingKeyIn(document, { did, kid, alg })
}

const didOf = (kid: string) => kid.slice(0, kid.indexOf('#'))

/** Whether the address is below the folder of a did:web's document; `/.well-known/` stands for the whole origin. */
function isWithin(url: string, documentUrl: string | undefined): boolean {
  const [address, document] = [URL.parse(url), URL.parse(documentUrl ?? '')]
  if (address === null || document === null || address.origin !== document.origin) return false
  const folder = document.pathname.replace(/(\/\.well-known)?\/did\.json$/, '/')
  return `${address.pathname.replace(/\/$/, '')}/`.startsWith(folder)
}
