/** Where the lines of the agents go: to our stderr, pretty on a terminal as our own are. */
export async function agentLines(stderr: NodeJS.WriteStream): Promise<(line: string) => void> {
  if (!stderr.isTTY) return (line) => void stderr.write(`${line}\n`)
  const { default: pretty } = await import('pino-pretty')
  const stream = pretty({ destination: 2, sync: true, colorize: true })
  return (line) => void stream.write(`${line}\n`)
}
