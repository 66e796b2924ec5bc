import { z } from 'zod'
import { SignIn } from '../approval/sign-in.ts'
import type { ClientDirectory } from '../clients/client-directory.ts'
import type { ManagedClient } from '../clients.ts'
import type { OAuthStore } from '../oauth-store.ts'
import type { Account, AccountClients, Accounts } from './accounts.ts'

/** The client of the console itself. Its tokens only prove a sign-in and are revoked immediately. */
export const consoleClientId = 'parley-console'

/** The scopes with which the console acts for a person. */
export const workScopes = 'agent:read agent:write agent:execute'
/** The scopes of an operator at the gateway. No agent accepts a token with `agent:admin`. */
export const adminScopes = `${workScopes} agent:admin`

/** Returns the OAuth clients of accounts at the embedded OAuth server. */
export function accountClients(
  managed: { ensure(client: ManagedClient): Promise<unknown> },
  clients: ClientDirectory,
): AccountClients {
  return {
    create: async (clientId, { name, role }) => {
      const scope = role === 'operator' ? adminScopes : workScopes
      await managed.ensure({ clientId, clientName: `Console, ${name}`, scope })
    },
    exists: async (clientId) => (await clients.find(clientId)) !== undefined,
    remove: async (clientId) => void (await clients.remove(clientId)),
  }
}

export function passwordSignIn(
  accounts: Pick<Accounts, 'check'>,
  store: ConstructorParameters<typeof SignIn>[1],
): SignIn {
  return new SignIn(
    async ({ account = '', code }) => (await accounts.check(account, code)) !== undefined,
    store,
  )
}

const model = 'ConsoleSignIn'
/** Longer than the lifetime of an authorization code. */
const rememberedSeconds = 120

const signedInAccount = z.object({ name: z.string(), epoch: z.string(), exp: z.number() })

/** Records the account that has signed in, by the grant of the authorization code. */
export async function rememberAccount(
  store: Pick<OAuthStore, 'upsert'>,
  grantId: string,
  { name, epoch }: Account,
): Promise<void> {
  const exp = Math.floor(Date.now() / 1000) + rememberedSeconds
  await store.upsert({ model, id: grantId, payload: { name, epoch, exp }, grantId, expiresAt: exp })
}

/**
 * Returns the account that has signed in for a token of the console's client. It works once: the token and its grant are
 * revoked.
 */
export async function takeAccount(
  store: Pick<OAuthStore, 'find' | 'consume' | 'destroy' | 'revokeByGrantId'>,
  accounts: Pick<Accounts, 'find'>,
  tokenId: string,
): Promise<Account | undefined> {
  const token = await store.find('AccessToken', tokenId)
  const grantId = token?.['grantId']
  if (token?.['clientId'] !== consoleClientId || typeof grantId !== 'string') return undefined
  const found = signedInAccount.safeParse(await store.find(model, grantId)).data
  const isFirst = found !== undefined && (await store.consume(model, grantId, Math.floor(Date.now() / 1000)))
  await store.destroy('Grant', grantId)
  await store.revokeByGrantId(grantId)
  if (found === undefined || !isFirst || found.exp * 1000 <= Date.now()) return undefined
  const account = await accounts.find(found.name)
  return account?.disabled === false && account.epoch === found.epoch ? account : undefined
}
