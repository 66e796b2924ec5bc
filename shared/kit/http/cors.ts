import cors from '@fastify/cors'
import { dialectHeaders } from '@parley/wire/codecs/dialects'
import type { FastifyInstance } from 'fastify'

const preflightMaxAgeSeconds = 600

/** Request headers that cross-origin pages may send. */
const allowedHeaders = [
  'Authorization',
  'Content-Type',
  'Accept',
  'Idempotency-Key',
  'If-None-Match',
  'Last-Event-ID',
  'X-Request-Id',
  'traceparent',
  'tracestate',
  'DPoP',
  'X-DID',
  'X-DID-Timestamp',
  'X-DID-Signature',
  'X-DID-Audience',
  'X-PAYMENT',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT-SESSION',
  'X-Parley-Context',
  ...dialectHeaders.request,
  'OpenAI-Organization',
  'OpenAI-Project',
  'OpenAI-Beta',
  'X-Stainless-Arch',
  'X-Stainless-Helper-Method',
  'X-Stainless-Lang',
  'X-Stainless-OS',
  'X-Stainless-Package-Version',
  'X-Stainless-Retry-Count',
  'X-Stainless-Runtime',
  'X-Stainless-Runtime-Version',
  'X-Stainless-Timeout',
]

/** Response headers that cross-origin pages may read, in addition to the safelisted ones. */
export const exposedHeaders = [
  'X-Request-Id',
  'X-Next-Cursor',
  'X-Agent',
  'X-Negotiation-Id',
  'X-Parley-Chain',
  'X-Parley-Incomplete',
  'X-Parley-Context',
  'X-Parley-Task',
  'Idempotency-Key',
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'Retry-After',
  'WWW-Authenticate',
  ...dialectHeaders.answer,
]

/** Enables CORS for these origins (`*`: every one). Without origins, adds no headers. Cookies are never allowed. */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  const all = origins.includes('*')
  void app.register(cors, {
    // With a function, a disallowed origin gets no CORS headers at all.
    origin: (origin, done) => {
      const allowed = origin !== undefined && (all || origins.includes(origin))
      done(null, allowed ? (all ? '*' : origin) : false)
    },
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    allowedHeaders,
    exposedHeaders,
    credentials: false,
    maxAge: preflightMaxAgeSeconds,
    strictPreflight: false,
  })
}
