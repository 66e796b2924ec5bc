import { type DidDocument, verifyDocument } from '@parley/kit/did/document'
import { cardHash, type Vouched, verifyProof } from '@parley/kit/did/vouch'
import type { JsonObject } from '@parley/wire/model/task'

/** The documents to verify, fetched from the gateway or read from saved files. */
export interface Evidence {
  /** The gateway's response to `GET /registry/agents/{id}`. */
  entry: JsonObject
  /** The gateway's response to `GET /.well-known/did.json`. */
  gateway: JsonObject
  /** The agent's DID document; absent if the agent has no DID. */
  agent?: JsonObject
}

/** A verification step. `fault` is absent if the step passed. */
export interface Step {
  step: string
  fault?: string
}

/** Verifies the gateway's document, the entry and the agent's document. Skips steps that depend on a failed step. */
export async function verifyEntry({ entry, gateway, agent }: Evidence): Promise<Step[]> {
  const steps: Step[] = []
  const holds = async (step: string, check: () => unknown) => {
    const fault = await Promise.resolve()
      .then(check)
      .then(
        () => undefined,
        (error: Error) => error.message,
      )
    steps.push({ step, ...(fault !== undefined && { fault }) })
    return fault === undefined
  }
  const document = gateway as unknown as DidDocument
  let said: Vouched | undefined
  const known = await holds('the gateway’s document is that of its DID', () =>
    verifyDocument(gateway, didIn(gateway, 'id') ?? ''),
  )
  if (!known) return steps
  const signed = await holds('the entry’s proof is signed by the gateway', async () => {
    if (typeof entry['proof'] !== 'string') throw new Error('The entry carries no proof.')
    said = await verifyProof(entry['proof'], document)
  })
  if (!signed || said === undefined) return steps
  const vouched = said
  await holds('the proof is about this DID', () => same(entry['did'] ?? null, vouched.sub))
  await holds('the proof is about this address', () => same(entry['url'], vouched.url))
  await holds('the proof is about this card', () =>
    same(cardHash((entry['card'] ?? {}) as JsonObject), vouched.card_hash),
  )
  await holds('the proof and the entry agree on “verified”', () => same(entry['verified'], vouched.verified))
  await holds('the gateway has seen the agent prove its key', () => {
    if (!vouched.verified) throw new Error('The entry is not verified.')
  })
  await holds('the agent’s document is that of its DID, with the keys of the proof', () => {
    if (agent === undefined || vouched.sub === null) throw new Error('The agent has no DID.')
    same(verifyDocument(agent, vouched.sub).join(), vouched.keys.join())
  })
  return steps
}

/** Reads a DID from untrusted JSON. */
export function didIn(object: JsonObject, field: 'id' | 'did'): string | undefined {
  const did = object[field]
  return typeof did === 'string' ? did : undefined
}

function same(given: unknown, wanted: unknown): void {
  if (given !== wanted) throw new Error(`The value differs: expected ${String(wanted)}`)
}
