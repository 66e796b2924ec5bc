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

/** The answer to `GET /keys`. */
export const keyStatusAnswer = z
  .object({
    master_key: z.object({ id: z.string(), source: z.string(), replaces: z.array(z.string()) }),
    data_keys: z.array(
      z.object({ id: z.string(), created_at: z.string(), current: z.boolean(), records: z.int() }),
    ),
    other_records: z.int(),
    files: z.array(z.string()),
  })
  .meta({ id: 'EncryptionKeys' })

/** The answer to `POST /keys/rotate`. */
export const keyRotationAnswer = z.object({
  rotated: z.enum(['data', 'master', 'none']),
  continued: z.boolean(),
  records: z.int(),
  unreadable: z.int(),
  steps: z.array(z.string()),
  status: keyStatusAnswer,
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
