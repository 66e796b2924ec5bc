import { ConnectionError, RpcError } from '../shared/client/rpc-error.ts'
import { ConfigError } from '../shared/process/settings.ts'
import { oneLine } from './printable.ts'

/** The command was not used as it is meant to be: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command could not do its work, and `message` says all there is to say: exit code 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
}

/** One readable sentence for whatever went wrong. */
export function sentenceOf(thrown: unknown): string {
  if (thrown instanceof RpcError) return rpcSentence(thrown)
  if (thrown instanceof ConnectionError) {
    return `Cannot reach ${thrown.message}. Is the server running (npx parley up), and is --url right?`
  }
  if (thrown instanceof UsageError || thrown instanceof CommandFailed || thrown instanceof ConfigError) {
    return thrown.message
  }
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
}

/** The same for programs. */
export function faultOf(thrown: unknown): Record<string, unknown> {
  const message = sentenceOf(thrown)
  if (!(thrown instanceof RpcError)) return { message }
  return { message, code: thrown.code, status: thrown.status, data: thrown.data }
}

function rpcSentence(error: RpcError): string {
  const hint =
    error.code === -32009
      ? ' Give a token with --token or PARLEY_TOKEN, or run the command in the folder where the server was started.'
      : ''
  const code = error.code === 0 ? '' : ` (${error.code})`
  const text = oneLine(error.message, 500).replace(/\.$/, '')
  return `${text}${code}.${details(error.data)}${hint}`
}

function details(data: Record<string, unknown>): string {
  const issues: unknown[] = Array.isArray(data.issues) ? data.issues : []
  const said = issues.slice(0, 5).map(issueOf)
  if (typeof data.reason === 'string') said.unshift(data.reason)
  return said.length === 0 ? '' : ` ${oneLine(said.join('; '), 500)}.`
}

function issueOf(issue: unknown): string {
  const { path, message } = (issue ?? {}) as { path?: unknown; message?: unknown }
  return [path, message].filter((text) => typeof text === 'string' && text !== '').join(': ')
}
