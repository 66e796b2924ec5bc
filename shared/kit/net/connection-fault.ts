import { errorCode } from './error-code.ts'

/** Error codes that `node:tls` uses for certificates that cannot be verified, with descriptions. */
const certificateFaults: [RegExp, string][] = [
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'its certificate is not valid for this name'],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?))$/,
    'its certificate is not trusted: set NODE_EXTRA_CA_CERTS to a file with the certificate of its issuer',
  ],
]

/** Describes why a connection failed in words for people. Returns undefined for other errors. */
export function connectionFault(thrown: unknown, url: string): string | undefined {
  const code = errorCode(innermost(thrown))
  // A DOMException has a numeric `code`.
  if (typeof code !== 'string') return undefined
  const isHttps = url.startsWith('https:')
  if (code === 'ECONNREFUSED') return 'nothing is listening at this address'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the name does not resolve'
  if (isHttps && /^(ERR_SSL_|EPROTO$)/.test(code))
    return 'the server does not use TLS, or uses an unsupported version. Try http:// instead of https://'
  if (!isHttps && (code === 'UND_ERR_SOCKET' || code.startsWith('HPE_INVALID')))
    return 'the server closed the connection. If it uses TLS, its address begins with https://'
  return certificateFaults.find(([pattern]) => pattern.test(code))?.[1]
}

/** Finds the reason for a "fetch failed" error, which is in its cause, possibly within an AggregateError. */
function innermost(thrown: unknown): unknown {
  let inner = thrown
  for (let depth = 0; depth < 8 && inner instanceof Error; depth += 1) {
    const next: unknown = inner instanceof AggregateError ? inner.errors[0] : inner.cause
    if (next === undefined) break
    inner = next
  }
  return inner
}
