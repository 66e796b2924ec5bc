/** How a host reaches the MCP server: by its address, or by a command that it starts. */
export interface McpAddresses {
  url: string
  command: { command: string; args: string[]; env: Record<string, string> }
}

export interface McpHost {
  title: string
  /** Where the configuration belongs; undefined if `configuration` is a command. */
  file?: string
  configuration: (addresses: McpAddresses) => string
}

const json = (value: unknown) => JSON.stringify(value, undefined, 2)

/** Hosts with their configuration, by the name that `--host` takes. */
export const mcpHosts: Record<string, McpHost> = {
  'claude-code': {
    title: 'Claude Code',
    configuration: ({ url }) => `claude mcp add --transport http parley ${url}`,
  },
  'claude-desktop': {
    title: 'Claude Desktop and other hosts that start a local command',
    file: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    configuration: ({ command }) => json({ mcpServers: { parley: command } }),
  },
  vscode: {
    title: 'VS Code',
    file: '.vscode/mcp.json',
    configuration: ({ url }) => json({ servers: { parley: { type: 'http', url } } }),
  },
  cursor: {
    title: 'Cursor',
    file: '.cursor/mcp.json',
    configuration: ({ url }) => json({ mcpServers: { parley: { url } } }),
  },
}
