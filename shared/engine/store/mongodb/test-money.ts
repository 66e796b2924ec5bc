import { randomUUID } from 'node:crypto'
import { insertUnlessThere, untilDone } from '@parley/kit/database/mongodb/database'
import { hashOf } from '@parley/kit/database/mongodb/keys'
import type { PaymentStore, TestTransfer } from '../payment-store.ts'
import type { Inside } from './record.ts'

export interface PurseDocument {
  _id: string
  agent_id: string
  version: number
  /** Decimal: it may be larger than an integer of BSON. */
  left: string
  /** A transfer, as JSON, that is taken off `left` already and not written down yet. */
  moving?: string
}

export interface TransferDocument {
  _id: string
  agent_id: string
  /** Which attempt made it. */
  move: string
  body: string
}

interface Moving {
  move: string
  nonceKey: string
  purse: string
  atomic: string
  txHash: string
}

type TestMoney = Pick<PaymentStore, 'moveTestMoney' | 'findTestTransfer' | 'testPurse'>

/**
 * A transfer is first noted in the purse that pays it, in the change that takes the money out of it; then it is written
 * down, then the note is removed. Whoever finds a note of somebody else ends that transfer first, so none is half done.
 */
export function testMoney({ agentId, beside }: Inside): TestMoney {
  const purses = beside<PurseDocument>('test_purses')
  const transfers = beside<TransferDocument>('test_transfers')
  const transferKey = (nonceKey: string) => ({ _id: `${agentId}/${hashOf(nonceKey)}`, agent_id: agentId })
  const purseKey = (purse: string) => ({ _id: `${agentId}/${hashOf(purse)}`, agent_id: agentId })

  /** True when it was this attempt that the transfer was made by. */
  const writeDown = async (purse: PurseDocument, moving: Moving): Promise<boolean> => {
    const { move, ...transfer } = moving
    const key = transferKey(transfer.nonceKey)
    const made =
      (await insertUnlessThere(transfers, { ...key, move, body: JSON.stringify(transfer) })) ||
      (await transfers.findOne(key))?.move === move
    // Another purse paid for the same nonce: the money comes back.
    const left = made ? purse.left : String(BigInt(purse.left) + BigInt(transfer.atomic))
    await purses.updateOne(
      { _id: purse._id, agent_id: agentId, version: purse.version },
      { $set: { left }, $unset: { moving: '' }, $inc: { version: 1 } },
    )
    return made
  }

  const move = async (wanted: TestTransfer, filledWith: bigint) => {
    const { nonceKey, purse: name, atomic, txHash } = wanted
    const key = purseKey(name)
    const purse = await purses.findOne(key)
    if (purse === null) {
      await insertUnlessThere(purses, { ...key, version: 0, left: String(filledWith) })
      return undefined
    }
    if (purse.moving !== undefined) {
      await writeDown(purse, JSON.parse(purse.moving) as Moving)
      return undefined
    }
    // After the purse was read: what was written down since has changed the purse's version.
    if ((await transfers.findOne(transferKey(nonceKey))) !== null) return 'already'
    const rest = BigInt(purse.left) - atomic
    if (rest < 0n) return 'insufficient'
    const moving: Moving = { move: randomUUID(), nonceKey, purse: name, atomic: String(atomic), txHash }
    const noted = { left: String(rest), moving: JSON.stringify(moving), version: purse.version + 1 }
    const { matchedCount } = await purses.updateOne({ ...key, version: purse.version }, { $set: noted })
    if (matchedCount === 0) return undefined
    return (await writeDown({ ...purse, ...noted }, moving)) ? 'moved' : 'already'
  }

  return {
    moveTestMoney: ({ filledWith, ...wanted }) => untilDone(() => move(wanted, filledWith)),
    findTestTransfer: async (nonceKey) => {
      const found = await transfers.findOne(transferKey(nonceKey))
      if (found === null) return undefined
      const { purse, atomic, txHash } = JSON.parse(found.body) as Moving
      return { nonceKey, purse, atomic: BigInt(atomic), txHash }
    },
    testPurse: async (purse, filledWith) => {
      const found = await purses.findOne(purseKey(purse))
      return found === null ? filledWith : BigInt(found.left)
    },
  }
}
