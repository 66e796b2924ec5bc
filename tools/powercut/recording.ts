/** Reads the system calls that strace recorded, in the order in which they began and ended. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** The system calls that change files or send data, and those that a recording must not contain. */
const calls = [
  'open,openat,creat,close,dup,dup2,dup3,lseek,mmap',
  'write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,sendmmsg,sendfile,copy_file_range',
  'fsync,fdatasync,sync,syncfs,sync_file_range,ftruncate,truncate,fallocate',
  'rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir',
  'io_uring_setup',
].join(',')

/**
 * The command that runs a program and records its calls. `-D` keeps the program a direct child, `--seccomp-bpf` stops it
 * only for the recorded calls, and all bytes are written in hexadecimal.
 */
export const recorded = (strace: string, log: string) =>
  [
    strace,
    '-D',
    '-f',
    '-qq',
    '--seccomp-bpf',
    '-xx',
    '-s',
    '100000000',
    '-e',
    `trace=${calls}`,
    '-o',
    log,
  ] as const

/** One system call. The same object is reported when it begins and when it ends. */
export interface SystemCall {
  name: string
  /** The arguments, with `"` in place of each string. */
  args: string[]
  strings: Buffer[]
  /** Undefined until the call ends; negative if it failed. */
  result: number | undefined
}

export interface Moment {
  call: SystemCall
  phase: 'begins' | 'ends'
}

export async function* momentsIn(log: string): AsyncGenerator<Moment> {
  const unfinished = new Map<string, SystemCall>()
  for await (const line of createInterface({ input: createReadStream(log, 'latin1') })) {
    const [, thread = '', text = ''] = /^(\d+) +(.*)$/s.exec(line) ?? []
    if (text.startsWith('<... ')) {
      const call = unfinished.get(thread)
      unfinished.delete(thread)
      if (call === undefined) continue
      call.result = resultIn(text)
      yield { call, phase: 'ends' }
      continue
    }
    const opens = text.indexOf('(')
    if (!/^[a-z]/.test(text) || opens < 0) continue
    const call = callFrom(text, opens)
    yield { call, phase: 'begins' }
    if (text.endsWith('<unfinished ...>')) unfinished.set(thread, call)
    else {
      call.result = resultIn(text)
      yield { call, phase: 'ends' }
    }
  }
}

function callFrom(text: string, opens: number): SystemCall {
  const pieces = text.slice(opens + 1).split('"')
  const args = pieces
    .filter((_, at) => at % 2 === 0)
    .join('"')
    .replace(/( <unfinished \.\.\.>|\)\s+= [^=]*)$/, '')
    .split(', ')
  const strings = pieces
    .filter((_, at) => at % 2 === 1)
    .map((hex) => Buffer.from(hex.replaceAll('\\x', ''), 'hex'))
  return { name: text.slice(0, opens), args, strings, result: undefined }
}

/** A call that the end of the process interrupted has no result and counts as failed. */
function resultIn(text: string): number {
  const [, result = '-1'] = /\)\s+= (-?\d+|0x[0-9a-f]+)\b[^"]*$/.exec(text.slice(-200)) ?? []
  return Number(result)
}
