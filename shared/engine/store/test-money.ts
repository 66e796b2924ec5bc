import { randomUUID } from 'node:crypto'
import {
  type DocumentDatabase,
  declareCollection,
  type Found,
  type OpenInTransaction,
} from '@parley/kit/database/documents'
import { untilDone } from '@parley/kit/database/retry'
import type { PaymentStore, TestTransfer } from './payment-store.ts'

const purseFields = {
  purse: 'key',
  version: 'integer',
  /** A decimal string, because the balance may exceed the database's integers. */
  left_over: 'text',
  /** A transfer, as JSON, that was deducted but is not yet recorded. */
  moving: 'text?',
} as const

export const purseCollection = declareCollection({
  name: 'test_purses',
  fields: purseFields,
  key: ['purse'],
  indexes: {},
  sqlite: { without: ['version', 'moving'] },
  mongodb: { names: { left_over: 'left' } },
})

const transferFields = {
  nonce_key: 'key',
  /** The attempt that recorded the transfer. */
  move: 'text',
  purse: 'text?',
  atomic: 'text?',
  tx_hash: 'text?',
  /** The transfer as JSON. */
  body: 'text?',
} as const

export const transferCollection = declareCollection({
  name: 'test_transfers',
  fields: transferFields,
  key: ['nonce_key'],
  indexes: {},
  sqlite: { without: ['move', 'body'] },
  mongodb: { without: ['nonce_key', 'purse', 'atomic', 'tx_hash'] },
})

interface Moving {
  move: string
  nonceKey: string
  purse: string
  atomic: string
  txHash: string
}

export const transferRow = ({ move, ...transfer }: Moving) => ({
  nonce_key: transfer.nonceKey,
  move,
  purse: transfer.purse,
  atomic: transfer.atomic,
  tx_hash: transfer.txHash,
  body: JSON.stringify(transfer),
})

type TestMoney = Pick<PaymentStore, 'moveTestMoney' | 'findTestTransfer' | 'testPurse'>

/**
 * In a shared database, the update that deducts a transfer from the balance also stores a note about it. The transfer
 * is then recorded, and the note is removed. A process that finds another process's note completes that transfer
 * first, so that no transfer stays incomplete.
 */
export function testMoney(database: DocumentDatabase): TestMoney {
  const purses = database.collection(purseCollection)
  const transfers = database.collection(transferCollection)

  /** Returns true if this attempt recorded the transfer. */
  const record = async (
    purse: string,
    { version, left_over }: Pick<Found<typeof purseFields>, 'version' | 'left_over'>,
    moving: Moving,
  ): Promise<boolean> => {
    const recorded =
      (await transfers.insert(transferRow(moving))) === 'written' ||
      (await transfers.get({ nonce_key: moving.nonceKey }))?.move === moving.move
    // The nonce was already paid from another balance, so the deduction is undone.
    const left = recorded ? left_over : String(BigInt(left_over) + BigInt(moving.atomic))
    const after = { left_over: left, moving: undefined, version: version + 1 }
    await purses.update({ purse }, after, { version })
    return recorded
  }

  const move = async ({ nonceKey, purse, atomic, txHash }: TestTransfer, filledWith: bigint) => {
    const found = await purses.get({ purse })
    if (found === undefined) {
      await purses.insert({ purse, version: 0, left_over: String(filledWith) })
      return undefined
    }
    if (found.moving !== undefined) {
      await record(purse, found, JSON.parse(found.moving))
      return undefined
    }
    // Checked after the balance is read, because a transfer recorded since then has changed the balance's version.
    if ((await transfers.get({ nonce_key: nonceKey })) !== undefined) return 'already'
    const rest = BigInt(found.left_over) - atomic
    if (rest < 0n) return 'insufficient'
    const moving: Moving = { move: randomUUID(), nonceKey, purse, atomic: String(atomic), txHash }
    const noted = { left_over: String(rest), moving: JSON.stringify(moving), version: found.version + 1 }
    if ((await purses.update({ purse }, noted, { version: found.version })) !== 'written') return undefined
    return (await record(purse, noted, moving)) ? 'moved' : 'already'
  }

  return {
    moveTestMoney: ({ filledWith, ...transfer }) =>
      database.transaction === undefined
        ? untilDone(() => move(transfer, filledWith))
        : database.transaction((open) => moveInTransaction(open, transfer, filledWith)),
    findTestTransfer: async (nonceKey) => {
      const found = await transfers.get({ nonce_key: nonceKey })
      if (found === undefined) return undefined
      const { purse, atomic, txHash } = transferOf(found)
      return { nonceKey, purse, atomic: BigInt(atomic), txHash }
    },
    testPurse: async (purse, filledWith) => {
      const found = await purses.get({ purse })
      return found === undefined ? filledWith : BigInt(found.left_over)
    },
  }
}

function moveInTransaction(
  open: OpenInTransaction,
  { nonceKey, purse, atomic, txHash }: TestTransfer,
  filledWith: bigint,
): 'moved' | 'already' | 'insufficient' {
  const [purses, transfers] = [open(purseCollection), open(transferCollection)]
  if (transfers.getNow({ nonce_key: nonceKey }) !== undefined) return 'already'
  const left = BigInt(purses.getNow({ purse })?.left_over ?? filledWith)
  if (left < atomic) return 'insufficient'
  purses.putNow({ purse, version: 0, left_over: String(left - atomic) })
  transfers.insertNow(transferRow({ move: '', nonceKey, purse, atomic: String(atomic), txHash }))
  return 'moved'
}

export function transferOf(row: Found<typeof transferFields>): Omit<Moving, 'move' | 'nonceKey'> {
  if (row.body !== undefined) return JSON.parse(row.body)
  const { purse = '', atomic = '', tx_hash: txHash = '' } = row
  return { purse, atomic, txHash }
}
