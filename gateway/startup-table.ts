import { methodOf } from '@parley/wire/codecs/parley/methods'
import type { AgentEntry } from './registry/entry.ts'

/** One agent in the table. */
export interface AgentRow {
  name: string
  /** Undefined if the agent does not run. */
  entry?: AgentEntry
  /** Address of this process. Defaults to the address in its entry. */
  url?: string
  reason?: string
}

export interface StartupTable {
  gatewayUrl: string
  /** Whether the gateway is ready. Defaults to true. */
  ready?: boolean
  /** Address of this gateway process. Defaults to `gatewayUrl`. */
  ownUrl?: string
  additional?: readonly { url: string; ready: boolean }[]
  oauthIssuer: string
  /** How a person signs in to the console for the first time; empty if people have accounts. Undefined without a console. */
  console?: string
  /** Data folder with the development client. Empty for the default folder, and undefined in production. */
  dataDir?: string
  agents: AgentRow[]
  /** Undefined if the gateway runs no agents. */
  isolation?: { mode: string; summary: string; missing: readonly string[] } | undefined
}

/** Returns the output of `npm start`: a table of addresses and a `curl` command to paste. */
export function startupTable(table: StartupTable): string {
  const rows = [
    ['gateway', table.ready === false ? 'not ready' : 'ready', gatewayCell(table)],
    ...(table.additional ?? []).map(({ url, ready }) => ['gateway', ready ? 'ready' : 'not running', url]),
    ['OAuth server', 'ready', table.oauthIssuer],
    ...(table.console === undefined ? [] : [['console', 'ready', consoleCell(table)]]),
    ['MCP server', 'ready', `${table.gatewayUrl}/mcp`],
    ['OpenAI API', 'ready', `${table.gatewayUrl}/v1`],
    ...table.agents.map((line) => agentRow(line, table.gatewayUrl)),
    ...isolationRows(table),
  ]
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const ready = table.agents.find(({ entry }) => entry !== undefined)?.entry
  const paste =
    ready === undefined || table.dataDir === undefined ? [] : ['', curlLine(ready, table, table.dataDir)]
  return `${['', ...lines, ...paste, ''].join('\n')}\n`
}

/** Returns the gateway's own address and, with several gateways, the public address that they share. */
function gatewayCell({ gatewayUrl, ownUrl = gatewayUrl, additional = [] }: StartupTable): string {
  return additional.length === 0 || ownUrl === gatewayUrl ? gatewayUrl : `${ownUrl}  (for all: ${gatewayUrl})`
}

function consoleCell({ gatewayUrl, console: hint = '' }: StartupTable): string {
  const url = `${gatewayUrl}/console/`
  return hint === '' ? url : `${url}  (${printable(hint)})`
}

function isolationRows({ isolation, agents }: StartupTable): string[][] {
  if (isolation === undefined || agents.length === 0) return []
  const { mode, summary, missing } = isolation
  return [['isolation', mode, summary], ...missing.map((one) => ['', 'missing', printable(one)])]
}

function agentRow({ name, entry, url, reason }: AgentRow, gatewayUrl: string): string[] {
  if (entry === undefined) return [name, 'not running', printable(reason ?? '')]
  return [
    name,
    'ready',
    `${gatewayUrl}/agents/${entry.slug}/  (own address ${url?.replace(/\/+$/, '') ?? entry.url})`,
  ]
}

function curlLine(entry: AgentEntry, { gatewayUrl }: StartupTable, dataDir: string): string {
  const message = {
    role: 'user',
    kind: 'message',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text: exampleOf(entry) }],
  }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: '1',
    method: methodOf('sendMessage'),
    params: { message },
  })
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

/** Replaces control characters so that the text cannot affect the terminal. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, 300)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
