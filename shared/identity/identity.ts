import { readBase58 } from './base58.ts'
import { makeDid } from './did.ts'
import { type DidDocument, didDocument } from './document.ts'
import { type KeyRing, loadOrCreateKeys } from './key-file.ts'
import { type KeyPair, keyPairFromSeed } from './keys.ts'

/** Who a server is: what it signs with and what it shows of itself. */
export interface Identity {
  did: string
  key: KeyPair
  document: DidDocument
}

/** An agent's, from its key file, which is made where it is not there. */
export async function agentIdentity(author: string, keyFile: string): Promise<Identity> {
  return identityOf(author, 'agent', await loadOrCreateKeys(keyFile))
}

/** The gateway's, from the three SERVICE_GATEWAY_* settings: the same seed gives the same DID on every replica. */
export function gatewayIdentity(settings: { seed: Uint8Array; author: string; name: string }): Identity {
  const key = keyPairFromSeed(settings.seed)
  return identityOf(settings.author, settings.name, {
    key,
    history: [{ publicKeyBase58: key.publicKeyBase58 }],
  })
}

/** @throws Error when author or name cannot stand in a DID */
function identityOf(author: string, name: string, { key, history }: KeyRing): Identity {
  // The first key makes the DID, also after it was retired.
  const first = readBase58(history[0].publicKeyBase58, 32)
  if (first === undefined) throw new Error('The first key of the key file is not a key.')
  const did = makeDid({ author, name, publicKey: first })
  return { did, key, document: didDocument(did, history) }
}
