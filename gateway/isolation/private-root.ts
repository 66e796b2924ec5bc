import { existsSync, lstatSync, readlinkSync, statSync } from 'node:fs'
import path from 'node:path'

/** System folders and files that every isolated agent may read. None of them contains secrets of the gateway. */
export const systemPaths: readonly string[] = [
  '/usr /bin /sbin /lib /lib32 /lib64 /opt /nix',
  '/etc/ssl /etc/pki /etc/ca-certificates /etc/fonts /etc/alternatives /etc/ld.so.cache',
  '/etc/resolv.conf /etc/hosts /etc/host.conf /etc/nsswitch.conf /etc/gai.conf',
  '/etc/passwd /etc/group /etc/services /etc/protocols /etc/localtime /etc/os-release',
].flatMap((line) => line.split(' '))

const devices = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom']
/** Folders of which one serves as the mount point of the new root. */
const mountPoints = ['/mnt', '/media', '/srv', '/var/empty', '/tmp']
/** Limit of a folder in memory, which is not counted as memory of the agent. */
const memoryFolderMb = 64

export interface PrivateRoot {
  /** Files and folders that the agent may read, without the system's. */
  readable: readonly string[]
  /** Folders that the agent may write. The first one also contains its temporary files. */
  writable: readonly [string, ...string[]]
  cwd: string
}

/**
 * Returns a shell script that runs its arguments in a root folder that contains only the system, the readable paths
 * (read-only) and the writable folders. It runs in a new mount and PID namespace, in which
 * `unshare` has mounted /proc, as root there.
 */
export function privateRootScript({ readable, writable, cwd }: PrivateRoot): string {
  const system = systemPaths.filter((one) => existsSync(one))
  const links = system.filter(isLink)
  const copied = system.filter((one) => !isLink(one) && !isFolder(one))
  const shown = outermost([...system.filter((one) => !isLink(one) && isFolder(one)), ...readable])
  const stage = mountPoints.find((one) => existsSync(one) && ![...shown, ...writable].some(isBelow(one)))
  if (stage === undefined) throw new Error(`none of ${mountPoints.join(', ')} can be a mount point`)
  const folders = [...shown, ...writable].filter(isFolder)
  const files = [...devices, ...shown.filter((one) => !isFolder(one))]
  const parents = [...files, ...links].map((one) => path.dirname(one))
  const made = ['/proc', '/tmp', '/var', '/dev/shm', '/etc', ...folders, ...parents]
  // With code or data below /tmp, there is no shared /tmp to write to, and only TMPDIR remains. The agent may have replaced
  // the folder by a link, so its path is resolved in the new root, where no link leads out.
  const temporary = [...shown, ...writable].some(isBelow('/tmp'))
    ? ''
    : `mount --bind ${quoted(path.join(writable[0], 'tmp'))} /tmp && `
  const lines = [
    'set -e',
    `r=${quoted(stage)}`,
    'mount -t tmpfs -o mode=0755,nosuid,nodev,size=4m parley "$r"',
    `mkdir -p ${made.map(inside).join(' ')}`,
    'ln -s /tmp "$r/var/tmp"',
    ...links.map(linked),
    ...(copied.length === 0 ? [] : [`cp -L ${copied.map(quoted).join(' ')} "$r/etc"`]),
    ...files.map((one) => `: > ${inside(one)}`),
    ...shown.map(readOnly),
    ...[...devices, ...writable].map((one) => `mount --rbind ${quoted(one)} ${inside(one)}`),
    `mount -t tmpfs -o mode=1777,nosuid,nodev,size=${memoryFolderMb}m parley "$r/dev/shm"`,
    'mount --rbind /proc "$r/proc"',
    'mount -o remount,bind,ro,nosuid,nodev "$r"',
    // Signals that arrive during the set-up keep their default action, because `exec` replaces this shell.
    `exec chroot "$r" /bin/sh -c ${quoted(`${temporary}cd "$0" && exec "$@"`)} ${quoted(cwd)} "$@"`,
  ]
  return lines.join('\n')
}

/** Copies a link, such as /bin. The target of any other link is copied instead. */
function linked(link: string): string {
  const target = path.resolve(path.dirname(link), readlinkSync(link))
  const isShown = systemPaths.some((one) => isBelow(one)(target))
  if (isShown) return `ln -s ${quoted(readlinkSync(link))} ${inside(link)}`
  return `cp -rL ${quoted(link)} ${inside(link)}`
}

/** The flags of a mount that belongs to a user namespace cannot be removed, so `noexec` is kept where it is set. */
function readOnly(source: string): string {
  const at = inside(source)
  const options = 'ro,nosuid,nodev'
  return [
    `mount --rbind ${quoted(source)} ${at}`,
    `{ mount -o remount,bind,${options} ${at} 2>/dev/null || mount -o remount,bind,${options},noexec ${at}; }`,
  ].join(' && ')
}

const inside = (one: string) => `"$r"${quoted(one)}`

/** Removes the paths below another one. */
function outermost(paths: readonly string[]): string[] {
  const unique = [...new Set(paths)].sort((a, b) => a.length - b.length)
  return unique.filter((one) => !unique.some((other) => other !== one && isBelow(other)(one)))
}

const isBelow = (folder: string) => (one: string) => one === folder || one.startsWith(`${folder}/`)

function isFolder(one: string): boolean {
  return statSync(one).isDirectory()
}

function isLink(one: string): boolean {
  return lstatSync(one).isSymbolicLink()
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
