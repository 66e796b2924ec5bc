/**
 * The files of a folder as a disk has them after a power cut. Unsynced changes may be lost: bytes of a file until
 * `fsync` of the file, and names of files until `fsync` of their folder.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** A change of a file. `done` is false while the system call runs, so that a sync that begins during the call does not cover it. */
export type Change = ({ at: number; bytes: Buffer } | { size: number }) & { done: boolean }

/** Chooses whether a sector of an unsynced write, or another unsynced change, survives. */
export type Survives = () => boolean

export class DiskFile {
  readonly #synced = new Content()
  #unsynced: Change[] = []
  /** Size as the process sees it. */
  size = 0

  change(change: Change): void {
    this.#unsynced.push(change)
    if ('size' in change) this.size = change.size
    else this.size = Math.max(this.size, change.at + change.bytes.length)
  }

  /** The changes that a sync covers which begins now. */
  covered(): Set<Change> {
    return new Set(this.#unsynced.filter(({ done }) => done))
  }

  synced(covered: Set<Change>): void {
    for (const change of this.#unsynced) if (covered.has(change)) this.#synced.apply(change)
    this.#unsynced = this.#unsynced.filter((change) => !covered.has(change))
  }

  /** @param sectorBytes the size of the pieces in which a write is torn */
  afterCut(survives: Survives, sectorBytes: number): Buffer {
    const content = this.#synced.copy()
    for (const change of this.#unsynced) {
      if ('size' in change) {
        if (survives()) content.apply(change)
        continue
      }
      const { at, bytes } = change
      for (let from = 0; from < bytes.length; ) {
        const to = Math.min(bytes.length, from + sectorBytes - ((at + from) % sectorBytes))
        if (survives()) content.apply({ at: at + from, bytes: bytes.subarray(from, to), done: true })
        from = to
      }
    }
    return content.whole()
  }
}

/** Bytes that grow without a copy for each change. */
class Content {
  #bytes: Buffer
  #size: number

  constructor(bytes: Buffer = Buffer.alloc(0)) {
    this.#bytes = bytes
    this.#size = bytes.length
  }

  copy(): Content {
    return new Content(Buffer.from(this.whole()))
  }

  whole(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  apply(change: Change): void {
    if ('size' in change) return this.#resize(change.size)
    const { at, bytes } = change
    if (at + bytes.length > this.#size) this.#resize(at + bytes.length)
    bytes.copy(this.#bytes, at)
  }

  #resize(size: number): void {
    if (size > this.#bytes.length) {
      const larger = Buffer.alloc(size * 2)
      this.whole().copy(larger)
      this.#bytes = larger
    }
    // A file that becomes longer again has zeros there.
    this.#bytes.fill(0, Math.min(size, this.#size), Math.max(size, this.#size))
    this.#size = size
  }
}

/** A file or folder at a path. */
export type Entry = DiskFile | 'folder'

interface Naming {
  folder: string
  /** Changes the names; a rename changes both in one step. */
  set: [path: string, entry: Entry | undefined][]
}

/** The names in a folder and its subfolders. The folder itself exists from the start. */
export class DiskNames {
  readonly #root: string
  readonly #now: Map<string, Entry>
  readonly #synced: Map<string, Entry>
  #unsynced: Naming[] = []

  constructor(root: string) {
    this.#root = root
    this.#now = new Map([[root, 'folder']])
    this.#synced = new Map(this.#now)
  }

  get(name: string): Entry | undefined {
    return this.#now.get(name)
  }

  /** Sets the entries of paths in one step; undefined removes one. */
  set(...entries: [path: string, entry: Entry | undefined][]): void {
    this.#unsynced.push({ folder: path.dirname(entries[0]?.[0] ?? ''), set: entries })
    assign(this.#now, entries)
  }

  synced(folder: string): void {
    for (const naming of this.#unsynced) if (naming.folder === folder) assign(this.#synced, naming.set)
    this.#unsynced = this.#unsynced.filter((naming) => naming.folder !== folder)
  }

  /** Writes what survives to another folder. */
  afterCut(target: string, survives: Survives, sectorBytes: number): void {
    const names = new Map(this.#synced)
    for (const { set } of this.#unsynced) if (survives()) assign(names, set)
    mkdirSync(target, { recursive: true })
    const sorted = [...names].sort(([one], [other]) => one.length - other.length)
    for (const [name, entry] of sorted) {
      // A folder that did not survive takes its entries with it.
      if (name !== this.#root && names.get(path.dirname(name)) !== 'folder') continue
      const there = path.join(target, path.relative(this.#root, name))
      if (entry === 'folder') mkdirSync(there, { recursive: true })
      else writeFileSync(there, entry.afterCut(survives, sectorBytes), { mode: 0o600 })
    }
  }
}

function assign(names: Map<string, Entry>, entries: [string, Entry | undefined][]): void {
  for (const [name, entry] of entries) {
    if (entry === undefined) names.delete(name)
    else names.set(name, entry)
  }
}
