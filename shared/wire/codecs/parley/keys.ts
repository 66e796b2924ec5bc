import { z } from 'zod'
import type { KeyRotation, KeyStatus } from '../../model/keys.ts'
import { wireObject } from './spelling.ts'

/** Writes the answer to `GET /keys` (spec/operations.md#keys). */
export function keyStatusOut({ masterKey, dataKeys, otherRecords, files }: KeyStatus) {
  return {
    master_key: masterKey,
    data_keys: dataKeys.map(({ createdAt, ...key }) => ({ ...key, created_at: createdAt })),
    other_records: otherRecords,
    files,
  }
}

/** Writes the answer to `POST /keys/rotate`. */
export function keyRotationOut({ status, ...rotation }: KeyRotation) {
  return { ...rotation, status: keyStatusOut(status) }
}

/** Reads the request body of `POST /keys/rotate`. */
export const keyRotationIn = wireObject({
  /** Whether to replace the master key instead of the data key. */
  master: z.boolean().default(false),
})

const statusIn = wireObject({
  masterKey: wireObject({ id: z.string(), source: z.string(), replaces: z.array(z.string()) }),
  dataKeys: z.array(
    wireObject({ id: z.string(), createdAt: z.string(), current: z.boolean(), records: z.number() }),
  ),
  otherRecords: z.number(),
  files: z.array(z.string()),
})

/** Reads the answer to `GET /keys`. */
export const readKeyStatus = (body: unknown): KeyStatus => statusIn.parse(body)

const rotationIn = wireObject({
  rotated: z.enum(['data', 'master', 'none']),
  continued: z.boolean(),
  records: z.number(),
  unreadable: z.number(),
  steps: z.array(z.string()),
  status: statusIn,
})

/** Reads the answer to `POST /keys/rotate`. */
export const readKeyRotation = (body: unknown): KeyRotation => rotationIn.parse(body)
