import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'

const preflightMaxAgeSeconds = 600

/** What pages of these origins may send; what else they ask for is not granted. */
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
  'X-DID',
  'X-DID-Timestamp',
  'X-DID-Signature',
  'X-DID-Audience',
  'X-PAYMENT',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT-SESSION',
]

/** What they may read of an answer, beside what every page may. */
const exposedHeaders = [
  'X-Request-Id',
  'X-Next-Cursor',
  'X-Agent',
  'X-Negotiation-Id',
  'X-Parley-Incomplete',
  'Idempotency-Key',
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'Retry-After',
  'WWW-Authenticate',
]

/**
 * Lets pages of these origins call from a browser (`*`: of all). Without origins nothing is added, and browsers keep to
 * their own rule. Credentials of the browser (cookies) are never part of it: callers show a token.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  const all = origins.includes('*')
  void app.register(cors, {
    // A function, so that an origin that may not call meets a server that knows no CORS.
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
