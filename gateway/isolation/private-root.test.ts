import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { killAllOf } from './agent-users.ts'
import { Isolation } from './isolation.ts'
import { confined } from './launch.ts'

const uid = 61_777
const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const canMount = isRoot && spawnSync('unshare', ['--mount', 'true']).status === 0
let folder: string

beforeEach(() => {
  // A folder below /tmp would not get a /tmp of its own.
  folder = mkdtempSync('/var/tmp/parley-root-')
  chmodSync(folder, 0o755)
})

afterEach(() => rmSync(folder, { recursive: true }))

function inPrivateRoot(data: string, script: string) {
  const how = {
    uid,
    root: 'private',
    limited: true,
    permission: undefined,
    limits: { memoryMb: 0, files: 0, processes: 0 },
    readable: [],
    writable: [data],
    cwd: data,
  } as const
  const { file, args } = confined({ file: '/bin/sh', args: ['-c', script] }, how)
  return spawnSync(file, args, { encoding: 'utf8', cwd: '/' })
}

test.skipIf(!canMount)(
  'a link in place of the folder for temporary files does not lead out of the root',
  () => {
    const data = path.join(folder, 'data')
    const secret = path.join(folder, 'secret')
    for (const one of [data, secret, path.join(data, 'tmp')]) mkdirSync(one)
    writeFileSync(path.join(secret, 'text'), 'the secret')
    expect(inPrivateRoot(data, 'cat /tmp/text; touch /tmp/x 2>&1; echo began').stdout).toContain('began')
    rmSync(path.join(data, 'tmp'), { recursive: true })
    for (const target of [secret, '/']) {
      symlinkSync(target, path.join(data, 'tmp'))
      expect(inPrivateRoot(data, `cat /tmp/text /tmp${secret}/text`).stdout).toBe('')
      rmSync(path.join(data, 'tmp'))
    }
  },
)

test.skipIf(!canMount)('the folder for temporary files is the /tmp of the agent', () => {
  const data = path.join(folder, 'data')
  for (const one of [data, path.join(data, 'tmp')]) {
    mkdirSync(one)
    chownSync(one, uid, uid)
  }
  expect(inPrivateRoot(data, 'echo text > /tmp/file').stderr).toBe('')
  expect(statSync(path.join(data, 'tmp/file')).uid).toBe(uid)
})

test.skipIf(!isRoot)('an agent cannot avoid its end by killing what should kill it', async () => {
  const user = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs']
  const hostile = spawn('setpriv', [...user, '/bin/sh', '-c', 'while :; do kill -KILL -1; done 2>&-'], {
    stdio: 'ignore',
  })
  const ended = once(hostile, 'exit')
  const started = () => spawnSync('pgrep', ['-U', String(uid)]).status === 0
  await expect.poll(started).toBe(true)
  expect(await killAllOf(uid)).toBe(true)
  await ended
  expect(started()).toBe(false)
})

test.skipIf(!isRoot)(
  'a running agent cannot redirect the copy of the payment key, and each process can read it',
  async () => {
    const file = path.join(folder, 'signer.key')
    writeFileSync(file, `0x${'1'.repeat(64)}`, { mode: 0o600 })
    const agentsDir = path.join(folder, 'agents')
    const own = path.join(agentsDir, 'payer')
    mkdirSync(own, { recursive: true })
    const dataDir = path.join(folder, 'data')
    await using isolation = await Isolation.open({
      settings: { mode: 'user', uids: [61_800, 61_900], limits: { memoryMb: 0, files: 0, processes: 0 } },
      dataDir,
      agentsDir,
      command: () => ({ file: process.execPath, args: [] }),
      log: makeLog({ level: 'silent', name: 'test' }),
    })
    const agent = { name: 'payer', folder: own, settings: { allow: ['signer'] as const, read: [] } }
    const data = path.join(dataDir, 'agents/payer')
    const prepare = () =>
      isolation.prepare(agent, { env: { PAYMENT_SIGNER_KEY_FILE: file }, folders: [data] })
    const first = await prepare()
    const copy = path.join(data, 'payment-signer.key')
    rmSync(copy)
    const target = path.join(folder, 'target')
    symlinkSync(target, copy)
    const second = await prepare()
    expect(second.env['PAYMENT_SIGNER_KEY_FILE']).toBe(copy)
    expect(statSync(copy)).toMatchObject({ uid: first.uid, mode: 0o100600 })
    expect(statSync(target, { throwIfNoEntry: false })).toBeUndefined()
    for (const launch of [first, second]) await isolation.ended(launch)
  },
)

test.skipIf(!isRoot)(
  'an agent can read the files of certificate authorities, and not those next to them',
  async () => {
    const agentsDir = path.join(folder, 'agents')
    const own = path.join(agentsDir, 'reader')
    mkdirSync(own, { recursive: true })
    const [authority, other, script] = ['ca.pem', 'ca.key', 'agents/reader/read.cjs'].map((name) =>
      path.join(folder, name),
    ) as [string, string, string]
    for (const file of [authority, other]) writeFileSync(file, path.basename(file))
    writeFileSync(
      script,
      `for (const file of process.argv.slice(2))
      try { console.log(require('fs').readFileSync(file, 'utf8')) } catch (error) { console.log(error.code) }`,
    )
    await using isolation = await Isolation.open({
      settings: { mode: 'user', uids: [61_800, 61_900], limits: { memoryMb: 0, files: 0, processes: 0 } },
      dataDir: path.join(folder, 'data'),
      agentsDir,
      command: () => ({ file: process.execPath, args: [script, authority, other] }),
      authorities: [authority],
      log: makeLog({ level: 'silent', name: 'test' }),
    })
    const agent = { name: 'reader', folder: own, settings: { allow: [], read: [] } }
    const launch = await isolation.prepare(agent, {
      env: {},
      folders: [path.join(folder, 'data/agents/reader')],
    })
    const { file, args } = launch.command
    const output = spawnSync(file, args, { cwd: launch.cwd, env: launch.env, encoding: 'utf8' })
    expect(output.stdout.trim().split('\n')).toEqual(['ca.pem', 'ERR_ACCESS_DENIED'])
    await isolation.ended(launch)
  },
)
