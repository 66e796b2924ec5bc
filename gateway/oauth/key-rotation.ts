import { setTimeout as wait } from 'node:timers/promises'
import type { KeyRotation, KeyStatus } from '@parley/wire/model/keys'
import { timestampOf } from '@parley/wire/model/timestamp'
import { freshMs, hasKeyRing } from '../keys/key-ring.ts'
import type { GatewayKeys } from '../keys/open-keys.ts'
import { encryptedFiles } from '../keys/secret-files.ts'
import { countRecords, type EncryptedRecords, encryptRecords } from './record-encryption.ts'

/** Other gateways use the new data key after this time at the latest. */
const settleMs = freshMs + 2000
/** How long a replaced data key is kept on a shared database, for a gateway that was suspended during the rotation. */
const keepMs = 24 * 3600 * 1000

export async function keyStatus(keys: GatewayKeys): Promise<KeyStatus> {
  const { current, source } = keys.masters
  const files = await encryptedFiles(keys.files.dir)
  // The ring is created when the first record is stored, not by this query.
  if (!(await hasKeyRing(keys.documents)))
    return { masterKey: { id: current.id, source, replaces: [] }, dataKeys: [], otherRecords: 0, files }
  const ring = await keys.ring()
  await ring.refresh()
  const { byDataKey, other } = await countRecords(keys.documents, ring)
  return {
    masterKey: { id: current.id, source, replaces: ring.masterIds.filter((id) => id !== current.id) },
    dataKeys: ring.summary.keys.map(({ id, created, current: isCurrent }) => ({
      id,
      createdAt: timestampOf(created * 1000),
      current: isCurrent,
      records: byDataKey[id] ?? 0,
    })),
    otherRecords: other,
    files,
  }
}

/**
 * Adds a data key and encrypts all records with it, while gateways read and write them. If an earlier rotation was
 * interrupted, completes that one instead.
 * @param waitMs how long to wait for other gateways before the last pass
 */
export async function rotateDataKey(keys: GatewayKeys, waitMs = settleMs): Promise<KeyRotation> {
  // Only a gateway that stores records creates the ring: with another OAuth server, each gateway may have its own master key.
  if (!(await hasKeyRing(keys.documents))) {
    const status = await keyStatus(keys)
    return { rotated: 'none', continued: false, records: 0, unreadable: 0, steps: [], status }
  }
  const ring = await keys.ring()
  await ring.refresh()
  let done = await encryptRecords(keys.documents, ring)
  const continued = done.encrypted + done.renewed > 0
  if (!continued) {
    await ring.addDataKey()
    done = await encryptRecords(keys.documents, ring)
  }
  if (keys.documents.shared) {
    await wait(waitMs)
    done = sum(done, await encryptRecords(keys.documents, ring))
  }
  const { byDataKey } = await countRecords(keys.documents, ring)
  const old = ring.retiredBefore(Date.now() - (keys.documents.shared ? keepMs : 0))
  await ring.removeDataKeys(old.filter((id) => byDataKey[id] === 0))
  const { encrypted, renewed, unreadable } = done
  const steps = unreadable > 0 ? [unreadableStep] : []
  const status = await keyStatus(keys)
  return { rotated: 'data', continued, records: encrypted + renewed, unreadable, steps, status }
}

/** Replaces the master key, or returns the steps that the operator has to take first. */
export async function rotateMasterKey(keys: GatewayKeys): Promise<KeyRotation> {
  const { file } = keys.masters
  const rotated = await keys.replaceMaster()
  const next = file === undefined ? [removePreviousStep] : [`Back up ${file} separately from the data.`]
  return {
    rotated: rotated ? 'master' : 'none',
    continued: false,
    records: 0,
    unreadable: 0,
    steps: rotated ? next : stepsFor(file),
    status: await keyStatus(keys),
  }
}

const unreadableStep =
  'Some records cannot be decrypted and were left unchanged. Restore the database from a backup, or accept that their clients register again.'
const removePreviousStep =
  'Remove PARLEY_MASTER_KEY_PREVIOUS from the settings of every gateway. Encrypted files of other machines are updated when their gateways start again.'

/** The replacement of a master key that the gateway cannot write itself. */
function stepsFor(file: string | undefined): string[] {
  return [
    'Generate a key: openssl rand -base64 32',
    file === undefined
      ? 'For every gateway, set PARLEY_MASTER_KEY_PREVIOUS to the present value of PARLEY_MASTER_KEY, and PARLEY_MASTER_KEY to the new key.'
      : `For every gateway, set PARLEY_MASTER_KEY_PREVIOUS to the content of ${file}, and PARLEY_MASTER_KEY to the new key.`,
    'Restart the gateways, one at a time.',
    'Run with both settings: parley keys rotate --master',
    'Remove PARLEY_MASTER_KEY_PREVIOUS from the settings, and back up the new key separately from the data.',
  ]
}

function sum(one: EncryptedRecords, other: EncryptedRecords): EncryptedRecords {
  return {
    encrypted: one.encrypted + other.encrypted,
    renewed: one.renewed + other.renewed,
    unreadable: other.unreadable,
  }
}
