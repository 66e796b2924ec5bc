import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { readSecretFileIfExists, replaceSecretFile } from '@parley/kit/process/secret-file'
import { ParleyError } from '@parley/wire/errors'
import type { Accounts } from './accounts.ts'

const name = 'operator'
const fileOf = (dataDir: string) => path.join(dataDir, 'oauth', 'console-password')

/**
 * Creates the account `operator` for development on this machine, with its password in a file of the data folder, unless
 * there are accounts. In production there are none until `parley operators add`: the file is removed, and its password
 * opens no account any longer.
 */
async function provideFirstAccount(
  accounts: Accounts,
  { dataDir, production }: { dataDir: string; production: boolean },
): Promise<void> {
  const file = fileOf(dataDir)
  if (production) {
    const password = await readSecretFileIfExists(file)
    if (password === undefined) return
    if ((await accounts.check(name, password)) !== undefined) await accounts.resetPassword(name)
    await rm(file, { force: true })
    return
  }
  if ((await accounts.list()).length > 0) return
  try {
    const { password } = await accounts.add({ name, role: 'operator' })
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await replaceSecretFile(file, `${password}\n`)
  } catch (error) {
    // Another gateway on the database has created the account.
    if (!(error instanceof ParleyError && error.error === 'Conflict')) throw error
  }
}

/**
 * Returns how a person signs in to the console for the first time. Undefined if people already have accounts. Call it when a
 * gateway starts for people, because it may create an account.
 */
export async function firstSignIn(
  accounts: Accounts,
  options: { dataDir: string; production: boolean },
): Promise<string | undefined> {
  await provideFirstAccount(accounts, options)
  const people = await accounts.list()
  if (people.length === 0) return 'no accounts: npx parley operators add <name>'
  const isNew = people.length === 1 && people[0]?.name === name && people[0].lastSignIn === undefined
  const file = fileOf(options.dataDir)
  const isReadable = isNew && (await readSecretFileIfExists(file)) !== undefined
  return isReadable ? `sign in as ${name} with the password in ${file}` : undefined
}
