import type { ClientKeys } from '@parley/kit/auth/client-keys'
import { partSignature, verifyPart } from '@parley/kit/did/part-signature'
import type { Part } from '@parley/wire/model/task'
import bs58 from 'bs58'

/**
 * What the signatures of a caller's parts are worth: of each that has one, whether the caller's key made it. Empty where
 * that key is not known; a provider that does not answer leaves it open. The parts stay as they came.
 */
export async function verifyCallersParts(
  parts: readonly Part[],
  owner: string,
  clientKeys: ClientKeys | undefined,
): Promise<ReadonlyMap<Part, boolean>> {
  const signed = parts.filter(({ metadata }) => metadata?.[partSignature] !== undefined)
  if (clientKeys === undefined || signed.length === 0 || !owner.startsWith('did:')) return new Map()
  const key = await clientKeys.publicKey(owner).catch(() => undefined)
  if (key === undefined) return new Map()
  const keys = [bs58.encode(key)]
  return new Map(signed.map((part) => [part, verifyPart(part, keys) === 'verified']))
}
