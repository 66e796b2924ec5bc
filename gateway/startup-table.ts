import type { AgentEntry } from './registry/entry.ts'

/** What became of a folder of `agents/`. */
export interface AgentLine {
  name: string
  /** Absent: it does not run. */
  entry?: AgentEntry
  /** Where this process of it listens. Default: the address of its entry. */
  url?: string
  reason?: string
}

export interface Announced {
  gatewayUrl: string
  /** Default true. */
  ready?: boolean
  /** Where it listens, and the other gateways that it runs. */
  ownUrl?: string
  further?: readonly { url: string; ready: boolean }[]
  oauthIssuer: string
  /** Of the development client; absent in production. */
  dataDir?: string
  agents: AgentLine[]
}

/** One table of addresses and one line to paste: what `npm start` prints once everything is ready. */
export function announcement(what: Announced): string {
  const rows = [
    ['gateway', what.ready === false ? 'not ready' : 'ready', gatewayCell(what)],
    ...(what.further ?? []).map(({ url, ready }) => ['gateway', ready ? 'ready' : 'not running', url]),
    ['OAuth server', 'ready', what.oauthIssuer],
    ...what.agents.map((line) => agentRow(line, what.gatewayUrl)),
  ]
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const ready = what.agents.find(({ entry }) => entry !== undefined)?.entry
  const paste =
    ready === undefined || what.dataDir === undefined ? [] : ['', curlLine(ready, what, what.dataDir)]
  return `${['', ...table, ...paste, ''].join('\n')}\n`
}

/** Beside others the address that all share is not its own. */
function gatewayCell({ gatewayUrl, ownUrl = gatewayUrl, further = [] }: Announced): string {
  return further.length === 0 || ownUrl === gatewayUrl ? gatewayUrl : `${ownUrl}  (for all: ${gatewayUrl})`
}

function agentRow({ name, entry, url, reason }: AgentLine, gatewayUrl: string): string[] {
  if (entry === undefined) return [name, 'not running', printable(reason ?? '')]
  return [
    name,
    'ready',
    `${gatewayUrl}/agents/${entry.slug}  (own address ${url?.replace(/\/+$/, '') ?? entry.url})`,
  ]
}

function curlLine(entry: AgentEntry, { gatewayUrl }: Announced, dataDir: string): string {
  const message = {
    role: 'user',
    kind: 'message',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text: exampleOf(entry) }],
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } })
  const token = `$(${dataDir === '' ? '' : `DATA_DIR=${quoted(dataDir)} `}npx parley token)`
  return [
    `curl -s ${quoted(`${gatewayUrl}/agents/${entry.slug}/`)}`,
    `-H "Authorization: Bearer ${token}"`,
    `-H 'Content-Type: application/json'`,
    `-d ${quoted(body)}`,
  ].join(' ')
}

function exampleOf(entry: AgentEntry): string {
  const examples = entry.skills.flatMap((skill) => skill['examples'] ?? [])
  const example = examples.find((text) => typeof text === 'string' && text.length <= 200)
  return printable(typeof example === 'string' ? example : 'Hello')
}

/** One line, without what a terminal would obey. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, 300)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
