import { expect, test } from 'vitest'
import { withCardKeys } from './identity.ts'
import { type KeyHistory, signNextKey } from './key-link.ts'
import { readKeyList, writeKeyList } from './key-list.ts'
import { keyPairFromSeed } from './keys.ts'

const [one, two] = [keyPairFromSeed(Buffer.alloc(32, 1)), keyPairFromSeed(Buffer.alloc(32, 2))]
const first = one.publicKeyBase58
const second = { publicKeyBase58: two.publicKeyBase58, signature: signNextKey(one, two.publicKeyBase58) }

test.each<[string, KeyHistory]>([
  ['one key', [{ publicKeyBase58: first }]],
  ['two', [{ publicKeyBase58: first }, second]],
  ['keys for cards', withCardKeys([{ publicKeyBase58: first }, second], [one, two])],
  ['a retired first key', [{ publicKeyBase58: first, retired: true }, second]],
  [
    'all retired',
    [
      { publicKeyBase58: first, retired: true },
      { ...second, retired: true },
    ],
  ],
])('a written list is read back: %s', (_what, history) => {
  expect(readKeyList(writeKeyList(history))).toEqual(history)
})

test.each([
  ['nothing', ''],
  ['a comma at the end', `${first},`],
  ['a signature on the first key', `${first}:${second.signature}`],
  ['a second key without a signature', `${first},${second.publicKeyBase58}`],
  ['another word', `${first}:removed`],
  ['a key for cards without a signature', `${first}:es256=${'A'.repeat(43)}.${'A'.repeat(43)}`],
  ['forbidden letters', first.replace(/^./, '0')],
  ['a key that is too long', `${first}${first}`],
  ['101 keys', Array(101).fill(first).join(',')],
])('%s is not a list of keys', (_what, text) => {
  expect(readKeyList(text)).toBeUndefined()
})
