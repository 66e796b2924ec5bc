/** The variables of the machine that the processes of agents and MCP servers receive. They contain no secrets. */
export const machineVariables = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'XDG_CACHE_HOME',
  'NODE_EXTRA_CA_CERTS',
] as const
