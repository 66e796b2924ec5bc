import { z } from 'zod'
import { readPublicKey } from '../../shared/auth/client-keys.ts'
import { DocumentFault, verifyDocument } from '../../shared/identity/document.ts'
import type { JsonObject } from '../../shared/protocol/task.ts'

const method = z.looseObject({ id: z.string(), type: z.string(), publicKeyBase58: z.string().optional() })
const document = z.looseObject({
  id: z.string(),
  verificationMethod: z.array(z.unknown()).max(100).default([]),
  authentication: z.array(z.unknown()).max(100).default([]),
})

/**
 * The keys (base58, oldest first) by which the holder of the DID may prove itself. Undefined: the document is not that
 * of this DID, or has no Ed25519 key.
 */
export function documentKeys(given: JsonObject, did: string): string[] | undefined {
  if (!did.startsWith('did:parley:')) return keysOfOthers(given, did)
  try {
    return verifyDocument(given, did)
  } catch (error) {
    if (error instanceof DocumentFault) return undefined
    throw error
  }
}

/** did:key and did:web, whose documents come from where the method says: nothing binds them but that. */
function keysOfOthers(given: JsonObject, did: string): string[] | undefined {
  const parsed = document.safeParse(given).data
  if (parsed?.id !== did) return undefined
  const named = new Set(parsed.authentication.filter((one) => typeof one === 'string'))
  const keys = [...parsed.verificationMethod, ...parsed.authentication].flatMap((one) => {
    const { id, type, publicKeyBase58 } = method.safeParse(one).data ?? {}
    if (type?.startsWith('Ed25519') !== true || publicKeyBase58 === undefined) return []
    const counts = parsed.authentication.includes(one) || named.has(id ?? '')
    return counts && readPublicKey(publicKeyBase58) !== undefined ? [publicKeyBase58] : []
  })
  return keys.length === 0 ? undefined : [...new Set(keys)]
}
