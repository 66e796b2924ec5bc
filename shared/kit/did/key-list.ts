import type { KeyEntry, KeyHistory } from './key-link.ts'

/**
 * Writes a key history as one line for a setting: `key`, then `,key:signature` for each later key, in base58.
 * `:retired` follows a retired key. The line contains no secrets.
 */
export function writeKeyList(history: KeyHistory): string {
  return history
    .map(({ publicKeyBase58, signature, retired }) =>
      [publicKeyBase58, signature, retired && 'retired'].filter(Boolean).join(':'),
    )
    .join(',')
}

const keysMax = 100
const base58 = '[1-9A-HJ-NP-Za-km-z]'
const item = new RegExp(`^(${base58}{32,44})(?::(${base58}{64,88}))?(:retired)?$`)

/** Parses a list written by `writeKeyList`; undefined if malformed. `verifyDocument` verifies the signatures. */
export function readKeyList(text: string): KeyHistory | undefined {
  const items = text.split(',', keysMax + 1)
  if (items.length > keysMax) return undefined
  const keys: KeyEntry[] = []
  for (const [index, one] of items.entries()) {
    const [, publicKeyBase58, signature, retired] = item.exec(one.trim()) ?? []
    if (publicKeyBase58 === undefined || (signature === undefined) !== (index === 0)) return undefined
    keys.push({
      publicKeyBase58,
      ...(signature && { signature }),
      ...(retired && { retired: true }),
    })
  }
  const [first, ...later] = keys
  return first && [first, ...later]
}
