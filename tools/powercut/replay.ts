/** Replays the recorded system calls of a process on the model of its disk. */
import path from 'node:path'
import { type Change, DiskFile, DiskNames } from './disk.ts'
import type { Moment, SystemCall } from './recording.ts'

interface OpenFile {
  file: DiskFile | undefined
  name: string
  position: number
  appends: boolean
}

/** Calls that would change a file in a way that the model does not have. */
const unknownCalls = ['sendfile', 'copy_file_range', 'symlink', 'symlinkat', 'pwritev2']

export class Replay {
  readonly names: DiskNames
  readonly #root: string
  readonly #open = new Map<number, OpenFile>()
  readonly #running = new Map<SystemCall, { change?: Change; covered?: Set<Change> }>()

  constructor(root: string) {
    this.#root = root
    this.names = new DiskNames(root)
  }

  /** Whether a call writes to, or syncs, a file of the folder other than one with this ending. */
  concernsFileWithout(call: SystemCall, ending: string): boolean {
    const file = this.#open.get(Number(call.args[0]))
    return file !== undefined && !file.name.endsWith(ending) && /^(p?write|f.*sync)/.test(call.name)
  }

  /** Whether the call writes to a file of the folder, and so sends nothing. */
  isFile(call: SystemCall): boolean {
    return this.#open.has(Number(call.args[0]))
  }

  /** @throws Error for a call that the model does not have */
  next({ call, phase }: Moment): void {
    if (phase === 'begins') this.#begins(call)
    else this.#ends(call)
  }

  #begins(call: SystemCall): void {
    const file = this.#open.get(Number(call.args[0]))
    if (file?.file === undefined) return
    const covers = /^(fsync|fdatasync)$/.test(call.name)
    if (covers) this.#running.set(call, { covered: file.file.covered() })
    const change = changeBy(call, file, file.file)
    if (change === undefined) return
    file.file.change(change)
    this.#running.set(call, { change })
  }

  #ends(call: SystemCall): void {
    const { change, covered } = this.#running.get(call) ?? {}
    this.#running.delete(call)
    const { name, args, result = -1 } = call
    const open = this.#open.get(Number(args[0]))
    if (result < 0) {
      if (change !== undefined)
        throw new Error(`A recorded ${name} failed, which the model does not support.`)
      return
    }
    if (change !== undefined) {
      if ('bytes' in change && result !== change.bytes.length)
        throw new Error(`A recorded ${name} was partial.`)
      change.done = true
    }
    if (covered !== undefined) open?.file?.synced(covered)
    else if (/^f(data)?sync$/.test(name) && open !== undefined) this.names.synced(open.name)
    if (name === 'close') this.#open.delete(Number(args[0]))
    if (name === 'lseek' && open !== undefined) open.position = result
    if (name.startsWith('dup') && open !== undefined) this.#open.set(result, open)
    this.#named(call, result)
    this.#refuseUnknown(call, open)
  }

  /** Calls that take a path. */
  #named({ name, args, strings }: SystemCall, result: number): void {
    const [one, other] = strings.map((bytes) => path.resolve(bytes.toString()))
    if (one === undefined || !this.#isInside(one)) return
    if (/^(open|openat|creat)$/.test(name)) this.#opened(one, args.join(' '), result)
    if (name.startsWith('mkdir')) this.names.set([one, 'folder'])
    if (/^(unlink|rmdir)/.test(name)) this.names.set([one, undefined])
    if (other === undefined) return
    if (name.startsWith('rename')) this.names.set([one, undefined], [other, this.names.get(one)])
    if (name.startsWith('link')) this.names.set([other, this.names.get(one)])
  }

  #opened(name: string, flags: string, descriptor: number): void {
    let entry = this.names.get(name)
    if (entry === undefined) {
      entry = new DiskFile()
      this.names.set([name, entry])
    }
    const file = entry === 'folder' ? undefined : entry
    if (flags.includes('O_TRUNC') && file !== undefined && file.size > 0) file.change({ size: 0, done: true })
    this.#open.set(descriptor, { file, name, position: 0, appends: flags.includes('O_APPEND') })
  }

  #refuseUnknown({ name, args }: SystemCall, open: OpenFile | undefined): void {
    const mapped = this.#open.get(Number(args[4]))
    const isShared = name === 'mmap' && args[2]?.includes('PROT_WRITE') && args[3]?.includes('MAP_SHARED')
    // The index of the log is rebuilt from the log.
    const unknown = isShared ? mapped !== undefined && !mapped.name.endsWith('-shm') : false
    // The ring without this thread only registers events.
    const isFileRing = name === 'io_uring_setup' && args.join(' ').includes('IORING_SETUP_SQPOLL')
    if (unknown || isFileRing || (open !== undefined && unknownCalls.includes(name)))
      throw new Error(`The model of the disk does not support ${name}.`)
  }

  #isInside(name: string): boolean {
    return name === this.#root || name.startsWith(`${this.#root}/`)
  }
}

function changeBy(call: SystemCall, open: OpenFile, file: DiskFile): Change | undefined {
  const { name, args, strings } = call
  if (name === 'ftruncate') return { size: Number(args[1]), done: false }
  // SQLite extends files with posix_fallocate, which writes no bytes.
  if (name === 'fallocate')
    return { size: Math.max(file.size, Number(args[2]) + Number(args[3])), done: false }
  if (!/^p?write/.test(name)) return undefined
  const bytes = strings.length === 1 ? (strings[0] as Buffer) : Buffer.concat(strings)
  if (name.startsWith('pwrite')) return { at: Number(args.at(-1)), bytes, done: false }
  const at = open.appends ? file.size : open.position
  open.position = at + bytes.length
  return { at, bytes, done: false }
}
