import { RecentMap } from '@parley/kit/did/recent-map'
import { z } from 'zod'
import type { SignIn } from '../approval/sign-in.ts'
import { isSafeRedirect } from '../client-rules.ts'
import { Seal, storedId } from '../exchange/sealed-tokens.ts'
import type { IdentityProvider } from '../identity-provider.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { AccountTokens } from './account-tokens.ts'
import { type Account, Accounts } from './accounts.ts'
import { adminScopes, consoleClientId, passwordSignIn, takeAccount, workScopes } from './console-client.ts'
import { Sessions } from './sessions.ts'

/** The parts of the OAuth server that the console needs. */
export interface ConsoleAccess {
  accounts: Accounts
  sessions: Sessions
  signIn: SignIn
  /**
   * Returns a token of the person's client, which stays in the gateway. Undefined if the client may use none.
   * @param purpose `operate` for the operator's routes of the gateway, `work` for everything else
   */
  tokenFor(account: Account, purpose: TokenPurpose): Promise<string | undefined>
  /** Forgets a token that was refused, so that the next call returns another one. */
  forgetToken(account: Account, purpose: TokenPurpose): void
  /** Seals a sign-in in progress in a cookie. */
  pending: Seal<PendingSignIn>
  /** Undefined if people enter their password at the gateway, without an authorization request. */
  codeFlow: ConsoleCodeFlow | undefined
}

const pendingSignIn = z.object({
  state: z.string(),
  verifier: z.string(),
  /** The path of the console to which the browser returns. */
  to: z.string(),
  iat: z.number(),
})
export type PendingSignIn = z.infer<typeof pendingSignIn>

function pendingSeal(secretKey: Uint8Array): Seal<PendingSignIn> {
  const form = { prefix: '', purpose: 'parley console sign-in', schema: pendingSignIn, maxChars: 3800 }
  return new Seal(form, [secretKey])
}

export type TokenPurpose = 'work' | 'operate'

/** The client with which the console sends people to the embedded OAuth server. */
export interface ConsoleCodeFlow {
  issuer: string
  clientId: string
  clientSecret: string
  redirectUri: string
  /** Returns the account that has signed in for the token, and revokes the token. */
  takeAccount(accessToken: string): Promise<Account | undefined>
}

/** A token is replaced long before it expires after an hour. */
const renewAfterMs = 30 * 60_000
const tokensMax = 1000

/** Returns the access of a gateway with the embedded OAuth server. */
export async function embeddedConsole(
  provider: IdentityProvider,
  { store, secretKey, publicUrl }: { store: OAuthStore; secretKey: Uint8Array; publicUrl: string },
): Promise<ConsoleAccess> {
  const { accounts } = provider
  const tokens = new RecentMap<string, { text: string; renewAt: number }>(tokensMax)
  const keyOf = ({ clientId }: Account, purpose: TokenPurpose) => `${purpose} ${clientId}`
  return {
    accounts,
    sessions: new Sessions(store, accounts),
    signIn: passwordSignIn(accounts, store),
    pending: pendingSeal(secretKey),
    tokenFor: async (account, purpose) => {
      const key = keyOf(account, purpose)
      const cached = tokens.get(key)
      if (cached !== undefined && cached.renewAt > Date.now()) return cached.text
      const text = await provider.issueToken(account.clientId, scopesFor(account, purpose))
      if (text !== undefined) tokens.set(key, { text, renewAt: Date.now() + renewAfterMs })
      return text
    },
    forgetToken: (account, purpose) => tokens.delete(keyOf(account, purpose)),
    codeFlow: await codeFlow(provider, store, publicUrl),
  }
}

/** Returns the access of a gateway with an external OAuth server, which knows none of the accounts. */
export function externalConsole({
  store,
  secretKey,
  tokens,
  accounts,
}: {
  store: OAuthStore
  secretKey: Uint8Array
  tokens: AccountTokens
  accounts: Accounts
}): ConsoleAccess {
  return {
    accounts,
    sessions: new Sessions(store, accounts),
    signIn: passwordSignIn(accounts, store),
    pending: pendingSeal(secretKey),
    tokenFor: async (account, purpose) => tokens.issue(account, scopesFor(account, purpose)),
    forgetToken: () => {},
    codeFlow: undefined,
  }
}

function scopesFor({ role }: Account, purpose: TokenPurpose): string {
  return role === 'operator' && purpose === 'operate' ? adminScopes : workScopes
}

/** Returns undefined if the gateway is reached without TLS, because codes are sent only to https and to this device. */
async function codeFlow(
  provider: IdentityProvider,
  store: OAuthStore,
  publicUrl: string,
): Promise<ConsoleCodeFlow | undefined> {
  const redirectUri = `${publicUrl}/console/callback`
  if (!isSafeRedirect(redirectUri)) return undefined
  const { clientSecret } = await provider.ensureClient({
    clientId: consoleClientId,
    clientName: 'Console',
    scope: 'agent:read',
    redirectUris: [redirectUri],
  })
  return {
    issuer: provider.issuer,
    clientId: consoleClientId,
    clientSecret,
    redirectUri,
    takeAccount: (token) => takeAccount(store, provider.accounts, storedId(token)),
  }
}
