import { ConnectionError, RpcError } from '@parley/client/internal/rpc-error'
import { ConfigError } from '@parley/kit/process/settings'
import { oneLine, slugMax } from './printable.ts'

/** Incorrect usage of a command, which causes exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Failure of a command, which causes exit code 1 and is fully explained by `message`. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
}

/** Returns the name by which a user knows a member of a request. */
type NameOf = (path: string) => string

/** Describes any thrown value in one readable sentence. */
export function sentenceOf(thrown: unknown, nameOf: NameOf = (path) => path): string {
  if (thrown instanceof RpcError) return rpcSentence(thrown, nameOf)
  if (thrown instanceof ConnectionError) {
    const hint = thrown.message.includes('https://')
      ? ''
      : ' Is the server running (npx parley up), and is --url right?'
    return `Cannot reach ${thrown.message}.${hint}`
  }
  if (thrown instanceof UsageError || thrown instanceof CommandFailed || thrown instanceof ConfigError) {
    return thrown.message
  }
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
}

/** Describes any thrown value as JSON, for programs. */
export function faultOf(thrown: unknown, nameOf?: NameOf): Record<string, unknown> {
  const message = sentenceOf(thrown, nameOf)
  if (!(thrown instanceof RpcError)) return { message }
  return { message, code: thrown.code, status: thrown.status, data: thrown.data }
}

/** Returns a human-readable description of a server error. Error codes appear only with `--json`. */
function rpcSentence(error: RpcError, nameOf: NameOf): string {
  const text = oneLine(error.message, 500).replace(/\.$/, '')
  return `${text}.${details(error.data, nameOf)}${hintOf(error)}`
}

/** Suggests what to do next. */
function hintOf({ code, data, headers }: RpcError): string {
  if (code === -32009)
    return ' Give a token with --token or PARLEY_TOKEN, or run the command in the folder where the server was started.'
  const { reason, agent } = data
  if (reason === 'not_admitted' && typeof agent === 'string')
    return ` The operator does so with: npx parley admit ${oneLine(agent, slugMax)}`
  const seconds = headers.get('retry-after') ?? ''
  if ((code === -32042 || code === -32041) && /^\d{1,6}$/.test(seconds))
    return ` Try again in ${Math.max(1, Number(seconds))} s.`
  return ''
}

/** Readable texts for values of `data.reason` that add information to the error message. */
const reasonTexts: Record<string, string> = {
  agent: 'npx parley agents lists the agents',
  did: 'No such DID is known here',
  route: 'The server does not know this address; check --url',
  missing_signature_headers: 'The request is not signed',
  client_not_did: 'The client of the token is not a DID',
  did_mismatch: 'The request is signed by another DID than that of the token',
  public_key_unavailable: 'The public key of the DID is not known to the OAuth server',
  timestamp_out_of_window: 'The clock of this machine differs too much from that of the server',
  malformed_input: 'The signature headers are malformed',
  crypto_mismatch: 'The signature does not match the key',
  replayed: 'The same signed request was sent before',
}

function details(data: Record<string, unknown>, nameOf: NameOf): string {
  const issues: unknown[] = Array.isArray(data.issues) ? data.issues : []
  const said = issues.slice(0, 5).map((issue) => issueOf(issue, nameOf))
  const reason = typeof data.reason === 'string' ? data.reason : ''
  // Skip machine identifiers without a readable text.
  const text = Object.hasOwn(reasonTexts, reason)
    ? reasonTexts[reason]
    : /\s/.test(reason)
      ? reason
      : undefined
  if (text !== undefined) said.unshift(text)
  return said.length === 0 ? '' : ` ${oneLine(said.join('; '), 500).replace(/\.$/, '')}.`
}

function issueOf(issue: unknown, nameOf: NameOf): string {
  const { path, message } = (issue ?? {}) as { path?: unknown; message?: unknown }
  const name = typeof path === 'string' && path !== '' ? nameOf(path) : undefined
  return [name, message].filter((text) => typeof text === 'string' && text !== '').join(': ')
}
