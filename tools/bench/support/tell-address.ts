/** Announces the address of a server process on stderr. */
export function tellAddress(server: { address(): unknown }): void {
  const { port } = server.address() as { port: number }
  console.error(JSON.stringify({ address: `http://127.0.0.1:${port}` }))
}
