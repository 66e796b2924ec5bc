import type { KeyEntry, KeyHistory } from './key-link.ts'

/**
 * Writes a key history as one line for a setting: `key`, then `,key:signature` for each later key, in base58.
 * `:es256=x.y.signature` follows a key with a key for cards, and `:retired` a retired key. The line contains no secrets.
 */
export function writeKeyList(history: KeyHistory): string {
  return history
    .map(({ publicKeyBase58, signature, retired, cardKey }) => {
      const state = retired
        ? 'retired'
        : cardKey && `es256=${[cardKey.x, cardKey.y, cardKey.signature].join('.')}`
      return [publicKeyBase58, signature, state].filter(Boolean).join(':')
    })
    .join(',')
}

const keysMax = 100
const base58 = '[1-9A-HJ-NP-Za-km-z]'
const cardKeyItem = `es256=([\\w-]{43})\\.([\\w-]{43})\\.(${base58}{64,88})`
const item = new RegExp(`^(${base58}{32,44})(?::(${base58}{64,88}))?(?::${cardKeyItem})?(:retired)?$`)

/** Parses a list written by `writeKeyList`; undefined if malformed. `verifyDocument` verifies the signatures. */
export function readKeyList(text: string): KeyHistory | undefined {
  const items = text.split(',', keysMax + 1)
  if (items.length > keysMax) return undefined
  const keys: KeyEntry[] = []
  for (const [index, one] of items.entries()) {
    const [, publicKeyBase58, signature, x, y, cardSignature, retired] = item.exec(one.trim()) ?? []
    if (publicKeyBase58 === undefined || (signature === undefined) !== (index === 0)) return undefined
    keys.push({
      publicKeyBase58,
      ...(signature && { signature }),
      ...(x && y && cardSignature && { cardKey: { x, y, signature: cardSignature } }),
      ...(retired && { retired: true }),
    })
  }
  const [first, ...later] = keys
  return first && [first, ...later]
}
