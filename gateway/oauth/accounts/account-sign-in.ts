import { addressOf } from '@parley/kit/http/request-limits'
import type { Audit } from '@parley/kit/process/audit'
import type { FastifyRequest } from 'fastify'
import type { SignInForm } from '../approval/pages.ts'
import { deviceDays, type SignIn, type SignInAnswer } from '../approval/sign-in.ts'
import type { Account, Accounts } from './accounts.ts'

export interface AccountSignInOptions {
  accounts: Accounts
  signIn: SignIn
  audit: Audit
  /** The host of the server, which the page shows. */
  host: string
  /** The path of the pages that receive the cookie of a known browser. */
  devicePath: string
  /** Whether cookies are sent by https only. */
  isSecure: boolean
}

/** The result of a form with the name and the password of an account. */
export type AccountAnswer =
  | { account: Account; deviceCookie: string | undefined }
  | { status: 403 | 429; headers: Record<string, string>; form: SignInForm }

const nameMaxChars = 64
const passwordMaxChars = 200

/**
 * Checks the form of the sign-in page. The answer is the same for a wrong password, an unknown account and a disabled one.
 * @param session the id of the sign-in request, which has a separate limit
 * @throws ParleyError Unavailable if the attempt cannot be counted
 */
export async function signInAccount(
  { accounts, signIn, audit, host, devicePath, isSecure }: AccountSignInOptions,
  { form, request, session }: { form: URLSearchParams; request: FastifyRequest; session: string },
): Promise<AccountAnswer> {
  const name = (form.get('account') ?? '').trim().toLowerCase().slice(0, nameMaxChars)
  const answer = await signIn.check({
    account: name,
    code: (form.get('password') ?? '').slice(0, passwordMaxChars),
    session,
    address: addressOf(request),
    device: deviceOf(request),
  })
  const attempt = { address: request.ip, action: 'console.sign_in', requestId: request.id, target: name }
  const account = answer.accepted ? await accounts.find(name) : undefined
  if (!answer.accepted || account === undefined) {
    audit.record({ ...attempt, allowed: false, reason: 'wrong account or password' })
    const waitSeconds = answer.accepted ? 0 : answer.waitSeconds
    const error = waitSeconds > 0 ? tooMany(answer) : 'The account or the password is wrong.'
    return {
      status: waitSeconds > 0 ? 429 : 403,
      headers: waitSeconds > 0 ? { 'retry-after': String(waitSeconds) } : {},
      form: { host, account: name, error },
    }
  }
  audit.record({ ...attempt, who: account.clientId, allowed: true, reason: account.role })
  await accounts.signedIn(name)
  const attributes = `Path=${devicePath}; Max-Age=${deviceDays * 86_400}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  const { device } = answer
  return { account, deviceCookie: device && `${deviceCookie}=${device}; ${attributes}` }
}

/** Names a browser from which the person has signed in before. */
const deviceCookie = 'parley_known_browser'

function deviceOf({ headers }: FastifyRequest): string | undefined {
  return /(?:^|;) *parley_known_browser=([\w-]{43})(?:;|$)/.exec(headers.cookie ?? '')?.[1]
}

function tooMany(answer: SignInAnswer): string {
  const { waitSeconds, limit } = answer.accepted ? { waitSeconds: 0, limit: undefined } : answer
  const wait = `Wait ${waitSeconds} second${waitSeconds === 1 ? '' : 's'} and try again.`
  if (limit === 'address') return `Too many attempts from your address. ${wait}`
  if (limit === 'everybody') return `Too many attempts at this server. ${wait}`
  return `Too many attempts to sign in. ${wait}`
}
