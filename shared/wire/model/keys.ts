import type { Timestamp } from './timestamp.ts'

/** The keys that encrypt what the gateway stores, without their values. */
export interface KeyStatus {
  masterKey: {
    id: string
    /** `PARLEY_MASTER_KEY`, or the path of the file. */
    source: string
    /** The ids of earlier master keys that are valid until the replacement is complete. */
    replaces: string[]
  }
  dataKeys: { id: string; createdAt: Timestamp; current: boolean; records: number }[]
  /** Records in plaintext or under an unknown data key. */
  otherRecords: number
  /** Files in DATA_DIR/oauth that are encrypted with the master key. */
  files: string[]
}

/** The result of `parley keys rotate`. */
export interface KeyRotation {
  /** The key that was replaced; `none` if the operator has to follow `steps` first, or if there are no records. */
  rotated: 'data' | 'master' | 'none'
  /** Whether a rotation that had been interrupted was completed instead of starting another. */
  continued: boolean
  /** The number of records that were encrypted again. */
  records: number
  /** The number of records that could not be decrypted and were left unchanged. */
  unreadable: number
  /** What the operator has to do next. */
  steps: string[]
  status: KeyStatus
}
