import { createHash } from 'node:crypto'
import path from 'node:path'

/** MongoDB's limits for the name of a database, and the lengths of the readable parts of a name. */
const [nameBytes, baseBytes, slugBytes] = [63, 31, 18]

/**
 * Returns the name of an agent's database: `<configured>_<agent>_<hash>`. The hash makes it unique, because the other
 * parts are shortened.
 */
export function databaseNameFor(base: string, { name, agentId }: { name: string; agentId: string }): string {
  const hash = createHash('sha256').update(`${base}\n${agentId}`).digest('hex').slice(0, 12)
  const parts = [readable(base, baseBytes), readable(name.toLowerCase(), slugBytes), hash]
  return parts.join('_').slice(0, nameBytes)
}

const readable = (text: string, length: number) => text.replaceAll(/[^\w-]/g, '-').slice(0, length)

export interface User {
  name: string
  password: string
}

/** The options of a URL that hold or select the gateway's own credentials. */
const credentialOptions = new Set(
  [
    'authSource',
    'authMechanism',
    'authMechanismProperties',
    'tlsCertificateKeyFile',
    'tlsCertificateKeyFilePassword',
  ].map((name) => name.toLowerCase()),
)

/**
 * Returns STORE_URL with another database, and the same hosts and options.
 * @param as another user, whose credentials are in `authSource`; null for none; undefined for the one in the URL
 */
export function withDatabase(
  url: string,
  { database, authSource, as }: { database: string; authSource?: string | undefined; as?: User | null },
): string {
  const [, protocol = '', credentials = '', hosts = '', query = ''] =
    /^(mongodb(?:\+srv)?:\/\/)([^@/]*@)?([^/?]+)(?:\/[^?]*)?(?:\?(.*))?$/s.exec(url) ?? []
  const isKept = (name: string) =>
    as === undefined ? name !== 'authsource' || authSource === undefined : !credentialOptions.has(name)
  const options = query
    .split('&')
    .filter((option) => option !== '' && isKept(option.split('=')[0]?.toLowerCase() ?? ''))
    .map(withAbsolutePath)
  if (authSource !== undefined && as !== null) options.push(`authSource=${encodeURIComponent(authSource)}`)
  const user = as ? `${encodeURIComponent(as.name)}:${encodeURIComponent(as.password)}@` : ''
  const address = `${protocol}${as === undefined ? credentials : user}${hosts}/${encodeURIComponent(database)}`
  return options.length === 0 ? address : `${address}?${options.join('&')}`
}

/** An agent runs in another folder than the gateway. */
function withAbsolutePath(option: string): string {
  const [, name, file] = /^(tlsCAFile)=(.+)$/i.exec(option) ?? []
  return file === undefined ? option : `${name}=${encodeURIComponent(path.resolve(decodeURIComponent(file)))}`
}
