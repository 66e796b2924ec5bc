import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { addressOf, newWalletKey } from '@parley/engine/payments/x402/wallet'
import { ExposedSecretFile, readSecretFile } from '@parley/kit/process/secret-file'
import { CommandFailed } from '../terminal/faults.ts'

type Hex = `0x${string}`

/** The test-money wallet of this working folder. */
export interface Wallet {
  file: string
  address: string
  privateKey: Hex
}

/** Opens the wallet in DATA_DIR, creating it if needed. @throws CommandFailed, whose message does not contain the key */
export async function openWallet(dataDir: string): Promise<Wallet> {
  const file = path.join(dataDir, 'wallet.key')
  const privateKey = (await readKey(file)) ?? (await makeKey(file))
  return { file, privateKey, address: await addressOf(privateKey) }
}

async function readKey(file: string): Promise<Hex | undefined> {
  let text: string
  try {
    text = await readSecretFile(file)
  } catch (thrown) {
    if (thrown instanceof ExposedSecretFile) throw thrown
    const { code } = thrown as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new CommandFailed(`${file} cannot be read (${code}).`)
  }
  const match = /^0x([\da-f]{64})$/i.exec(text.trim())
  if (match === null) throw new CommandFailed(`${file} holds no wallet key.`)
  return `0x${match[1]}`
}

/** If two commands create a key concurrently, both use the first key. */
async function makeKey(file: string): Promise<Hex> {
  const made = await newWalletKey()
  try {
    await mkdir(path.dirname(file), { recursive: true })
    await writeFile(file, `${made}\n`, { mode: 0o600, flag: 'wx' })
    return made
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    const theirs = code === 'EEXIST' ? await readKey(file) : undefined
    if (theirs === undefined) throw new CommandFailed(`${file} cannot be written (${code}).`)
    return theirs
  }
}
