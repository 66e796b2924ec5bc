import { readFileSync } from 'node:fs'

/** Everything that the hostile agent was sent. */
export interface Recorded {
  /** The complete record as text. */
  text: string
  requests: { method: string; url: string; headers: Record<string, string> }[]
  /** The agent's OAuth client, which the supervisor sends it. */
  client: { clientId: string; clientSecret: string }
  /** The bearer tokens of all requests, without duplicates. */
  tokens: string[]
}

export function readRecorded(file: string): Recorded {
  const text = readFileSync(file, 'utf8')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { kind: string; value: Record<string, unknown> })
  const requests = lines
    .filter(({ kind }) => kind === 'request')
    .map(({ value }) => value as unknown as Recorded['requests'][number])
  const sent = lines.find(({ kind, value }) => kind === 'message' && value['type'] === 'client')?.value
  const tokens = requests.flatMap(({ headers }) => headers['authorization']?.replace(/^bearer +/i, '') ?? [])
  return {
    text,
    requests,
    client: { clientId: String(sent?.['client_id']), clientSecret: String(sent?.['client_secret']) },
    tokens: [...new Set(tokens)],
  }
}
