import { terminalLine } from '@parley/kit/process/terminal-log'

/** Passes the log lines of the agents on to stderr, in the form of our own. */
export function agentLines(stderr: NodeJS.WriteStream): (line: string) => void {
  if (!stderr.isTTY) return (line) => void stderr.write(`${line}\n`)
  return (line) => void stderr.write(terminalLine(line))
}
