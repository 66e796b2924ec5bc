import { writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'

/** A record of a log. Positions increase by one. */
export interface LogRecord {
  position: number
  body: string
}

/** The log continues a later state than `after`, so records between them are missing. */
export class LogGap extends Error {
  override readonly name = 'LogGap'
}

/** The files belong to another log. */
export class ForeignLog extends Error {
  override readonly name = 'ForeignLog'
}

/** A record begins with the length of its body, a checksum of the rest, and its position. */
const headBytes = 16
const checkedFrom = 8
const fileMagic = Buffer.from('parley01')
const idBytes = 16
const fileHeadBytes = fileMagic.length + idBytes

interface Segment {
  file: string
  handle: FileHandle
  /** Where the next record begins. */
  end: number
  /** The position of its last record, or 0. */
  last: number
  /** Whether it contains records that were not synced. */
  dirty: boolean
}

/**
 * A write-ahead log: records that survive a power failure until they are released. Two files take turns. Each is written
 * from its beginning again once its records are released, so that a sync rarely has to change the size of a file. A
 * record is found by its checksum and by its position, which is higher than those of the records that it overwrites.
 */
export class SegmentLog implements AsyncDisposable {
  readonly #id: Uint8Array
  #active: Segment
  #other: Segment
  #position: number
  #released = 0
  #hasFailed = false

  private constructor(id: Uint8Array, active: Segment, other: Segment, position: number) {
    this.#id = id
    this.#active = active
    this.#other = other
    this.#position = position
  }

  /**
   * Opens the log `<file>.1` and `<file>.2`, or creates it. Call `reset` when the records have been processed, before the
   * first `append`.
   * @param id 16 bytes that identify the log
   * @param after the position of the last record that is no longer needed
   * @throws LogGap if the record after that one is missing, but later ones are not
   * @throws ForeignLog
   */
  static async open(
    file: string,
    { id, after }: { id: Uint8Array; after: number },
  ): Promise<{ log: SegmentLog; records: LogRecord[] }> {
    await using opened = new AsyncDisposableStack()
    const found: LogRecord[] = []
    const open = async (name: string): Promise<Segment> => {
      const handle = opened.use(await openFile(name))
      const records = recordsIn(await handle.readFile(), { id, file: name })
      found.push(...records)
      return { file: name, handle, end: fileHeadBytes, last: records.at(-1)?.position ?? 0, dirty: false }
    }
    const [first, second] = segmentFiles(file)
    const [active, other] = [await open(first), await open(second)]
    const records = recordsAfter(after, found, file)
    const log = new SegmentLog(id, active, other, after + records.length)
    // Failed until the first reset, so that nothing overwrites a record that was not processed.
    log.#hasFailed = true
    opened.move()
    return { log, records }
  }

  /** The position of the last record. */
  get position(): number {
    return this.#position
  }

  /** Whether appending has failed. `reset` makes it possible again. */
  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** The size of the records in the file that is being written. */
  get activeBytes(): number {
    return this.#active.last <= this.#released ? 0 : this.#active.end - fileHeadBytes
  }

  /**
   * Appends a record and resolves with its position once it is on the disk. Only one call may run at a time. If it
   * rejects, the record may have been stored, and every later call rejects until `reset`.
   * @param soon whether to resolve once the record survives this process; `sync` brings it to the disk
   */
  async append(body: string, soon = false): Promise<number> {
    if (this.#hasFailed) throw new Error('The log must be reset after a failure')
    const segment = this.#active
    if (segment.last <= this.#released) segment.end = fileHeadBytes
    const position = this.#position + 1
    const bytes = encode(position, body)
    try {
      segment.dirty = true
      writeAll(segment.handle, bytes, segment.end)
      if (!soon) await this.sync()
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
    segment.end += bytes.length
    segment.last = position
    this.#position = position
    return position
  }

  /**
   * Brings all records to the disk. Must not run at the same time as another `sync` or `append`. Rejects after a failure
   * until `reset`, because the kernel may have dropped what it could not write.
   */
  async sync(): Promise<void> {
    if (this.#hasFailed) throw new Error('The log must be reset after a failure')
    if (!this.#active.dirty) return
    try {
      await this.#active.handle.datasync()
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
    this.#active.dirty = false
  }

  /**
   * Makes the other file the active one, if its records are released. Returns the file that was active and the position of
   * its last record. All records must be synced: if a power failure lost records before others, `open` would report a gap.
   * Must not run at the same time as `append`.
   */
  rotate(): { file: string; last: number } | undefined {
    if (this.#active.dirty) return undefined
    if (this.#other.last > this.#released || this.#active.last <= this.#released) return undefined
    const before = this.#active
    this.#active = this.#other
    this.#other = before
    return { file: before.file, last: before.last }
  }

  /** Declares that records up to this position are no longer needed. */
  release(position: number): void {
    this.#released = Math.max(this.#released, position)
  }

  /**
   * Empties both files. All records must have been processed, durably. Must not run at the same time as `append`.
   * @param position the position after which the log continues
   */
  async reset(position: number): Promise<void> {
    this.#hasFailed = true
    for (const segment of [this.#active, this.#other]) {
      await segment.handle.truncate(0)
      writeAll(segment.handle, Buffer.concat([fileMagic, this.#id]), 0)
      await segment.handle.sync()
      Object.assign(segment, { end: fileHeadBytes, last: 0, dirty: false })
    }
    // Windows cannot open a folder and needs no sync.
    if (process.platform !== 'win32') {
      await using folder = await open(dirname(this.#active.file))
      await folder.sync()
    }
    this.#position = position
    this.#released = position
    this.#hasFailed = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#active.handle.close()
    await this.#other.handle.close()
  }
}

/** The two files of a log. */
export const segmentFiles = (file: string): [string, string] => [`${file}.1`, `${file}.2`]

/**
 * Returns the records of both files after the given position, in order.
 * @throws LogGap if the first of them is missing, but later ones are not
 */
export function recordsAfter(after: number, found: readonly LogRecord[], file: string): LogRecord[] {
  const records = found.filter(({ position }) => position > after)
  records.sort((a, b) => a.position - b.position)
  for (const [index, { position }] of records.entries()) {
    if (position === after + index + 1) continue
    throw new LogGap(`The record ${after + index + 1} of the log ${file} is missing.`)
  }
  return records
}

/** Reads the records of one file of a log, in order. @throws ForeignLog */
export function recordsIn(bytes: Buffer, { id, file }: { id: Uint8Array; file: string }): LogRecord[] {
  // A file that was never synced may be empty or contain zeros.
  if (bytes.length < fileHeadBytes || bytes.subarray(0, fileHeadBytes).every((byte) => byte === 0)) return []
  if (!bytes.subarray(0, fileHeadBytes).equals(Buffer.concat([fileMagic, id])))
    throw new ForeignLog(`The file ${file} belongs to another database.`)
  const records: LogRecord[] = []
  let at = fileHeadBytes
  while (at + headBytes <= bytes.length) {
    const ends = at + headBytes + bytes.readUInt32LE(at)
    if (ends > bytes.length || crc32(bytes.subarray(at + checkedFrom, ends)) !== bytes.readUInt32LE(at + 4))
      break
    const position = Number(bytes.readBigUInt64LE(at + checkedFrom))
    const before = records.at(-1)
    // A record of an earlier turn of this file.
    if (before !== undefined && position !== before.position + 1) break
    records.push({ position, body: bytes.toString('utf8', at + headBytes, ends) })
    at = ends
  }
  return records
}

function encode(position: number, body: string): Buffer {
  const length = Buffer.byteLength(body)
  const bytes = Buffer.allocUnsafe(headBytes + length)
  bytes.writeUInt32LE(length, 0)
  bytes.writeBigUInt64LE(BigInt(position), checkedFrom)
  bytes.write(body, headBytes, 'utf8')
  bytes.writeUInt32LE(crc32(bytes.subarray(checkedFrom)), 4)
  return bytes
}

async function openFile(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'wx+', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return open(file, 'r+')
  }
}

/** Writes to the page cache, which takes less time than a change of threads. */
function writeAll({ fd }: FileHandle, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, position + done)
}
