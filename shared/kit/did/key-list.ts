import type { KeyHistory, KnownKey } from './key-link.ts'

/**
 * A key history on one line, for a setting: `key`, then for each later key `,key:signature`, both in base58; `:retired`
 * after a key that is. It holds nothing secret.
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

/** Undefined for anything else. Whether the keys are linked is for `verifyDocument` to say. */
export function readKeyList(text: string): KeyHistory | undefined {
  const items = text.split(',', keysMax + 1)
  if (items.length > keysMax) return undefined
  const keys: KnownKey[] = []
  for (const [index, one] of items.entries()) {
    const [, publicKeyBase58, signature, retired] = item.exec(one.trim()) ?? []
    if (publicKeyBase58 === undefined || (signature === undefined) !== (index === 0)) return undefined
    keys.push({
      publicKeyBase58,
      ...(signature && { signature }),
      ...(retired && { retired: true as const }),
    })
  }
  return keys as KeyHistory
}
