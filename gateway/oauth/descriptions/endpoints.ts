import type { OperationDescription } from '@parley/kit/http/route-description'
import { z } from 'zod'
import { oauthErrors, pageErrors } from './errors.ts'

/** Descriptions of the endpoints of oidc-provider, which validates their requests itself. */

const oauth = {
  tag: 'oauth',
  access: 'public',
  ...oauthErrors,
} satisfies Partial<OperationDescription>

const form = <Shape extends z.ZodRawShape>(shape: Shape) => ({
  content: { 'application/x-www-form-urlencoded': z.looseObject(shape) },
})

const text = z.string().optional()
const clientCredentials = {
  client_id: text,
  client_secret: text,
  client_assertion: text,
  client_assertion_type: text,
}

const authorizationRequest = {
  client_id: z.string(),
  response_type: z.literal('code'),
  redirect_uri: z.url(),
  scope: text,
  state: text,
  resource: text,
  code_challenge: z.string(),
  code_challenge_method: z.literal('S256'),
}

const authorize = {
  ...oauth,
  summary: 'Request the approval of a person (authorization code with PKCE)',
  responses: {
    200: { description: 'A page that sends the code with a form', content: { 'text/html': z.string() } },
    303: {
      description: 'To the page of approval, or back to the application',
      headers: { location: 'The page' },
    },
  },
  errors: ['AuthenticationRequired', 'NotFound'],
  ...pageErrors,
} satisfies OperationDescription

const token: OperationDescription = {
  ...oauth,
  summary: 'Request an access token',
  description:
    'The client authenticates with HTTP Basic, in the form, with a signed assertion, or not at all if it is public.',
  headers: z.object({ dpop: text.describe('A proof of possession (RFC 9449)') }),
  body: form({
    grant_type: z.enum([
      'authorization_code',
      'refresh_token',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ]),
    scope: text,
    resource: text,
    code: text,
    code_verifier: text,
    redirect_uri: text,
    refresh_token: text,
    subject_token: text,
    subject_token_type: text,
    ...clientCredentials,
  }),
  responses: {
    200: {
      description: 'The token',
      json: z.looseObject({
        access_token: z.string(),
        token_type: z.enum(['Bearer', 'DPoP', 'N_A']),
        expires_in: z.int(),
        scope: z.string().optional(),
        refresh_token: z.string().optional(),
        issued_token_type: z.string().optional(),
      }),
    },
  },
  errors: ['AuthenticationRequired'],
}

const revoke: OperationDescription = {
  ...oauth,
  summary: 'Revoke a token (RFC 7009)',
  body: form({ token: z.string(), token_type_hint: text, ...clientCredentials }),
  responses: { 200: { description: 'The token is revoked, or was not valid' } },
  errors: ['AuthenticationRequired'],
}

export const introspect: OperationDescription = {
  ...oauth,
  summary: 'Introspect a token (RFC 7662)',
  description: 'For the clients of admitted agents.',
  access: 'basic',
  body: form({ token: z.string(), ...clientCredentials }),
  responses: { 200: { description: 'The state of the token', json: z.looseObject({ active: z.boolean() }) } },
  errors: ['AuthenticationRequired', 'InsufficientPermissions'],
}

const metadata = z.looseObject({
  client_name: z.string().optional(),
  redirect_uris: z.array(z.string()).optional(),
  grant_types: z.array(z.string()).optional(),
  response_types: z.array(z.string()).optional(),
  scope: z.string().optional(),
  token_endpoint_auth_method: z.string().optional(),
  jwks: z.looseObject({}).optional(),
})
const registered = z.looseObject({ client_id: z.string(), client_secret: z.string().optional() })

const register: OperationDescription = {
  ...oauth,
  summary: 'Register a client (RFC 7591)',
  description:
    'The token is the initial access token. If OAUTH_OPEN_REGISTRATION allows it, public clients register without one (spec/authentication.md#approval-of-applications).',
  access: 'optional',
  body: { json: metadata },
  responses: { 201: { description: 'The client with its credentials', json: registered } },
  errors: ['AuthenticationRequired', 'InsufficientPermissions'],
}

const ofRegistration = {
  ...oauth,
  description: 'The token is the registration access token of the client (RFC 7592).',
  access: 'token',
  errors: ['AuthenticationRequired', 'InsufficientPermissions'],
} satisfies Partial<OperationDescription>

const keySet = z.looseObject({ keys: z.array(z.looseObject({ kty: z.string() })) })
const keys: OperationDescription = {
  ...oauth,
  summary: 'The public keys of the OAuth server',
  responses: { 200: { description: 'A JSON Web Key Set', content: { 'application/jwk-set+json': keySet } } },
}

export const serverMetadata: OperationDescription = {
  ...oauth,
  summary: 'The metadata of the OAuth server (RFC 8414)',
  responses: {
    200: {
      description: 'The metadata',
      json: z.looseObject({ issuer: z.string(), token_endpoint: z.string(), jwks_uri: z.string() }),
    },
  },
}

/** The operations below the path of the OAuth server that are not routes of the gateway, by path. */
export const endpoints = (prefix: string) => {
  const client = {
    get: {
      ...ofRegistration,
      summary: 'Read a client',
      responses: { 200: { description: 'The client', json: registered } },
    },
    put: {
      ...ofRegistration,
      summary: 'Replace the metadata of a client',
      body: { json: metadata },
      responses: { 200: { description: 'The client', json: registered } },
    },
    delete: { ...ofRegistration, summary: 'Remove a client', responses: { 204: { description: 'Removed' } } },
  }
  const covers: Record<string, Record<string, OperationDescription>> = {
    [`${prefix}/authorize`]: {
      get: { ...authorize, query: z.object(authorizationRequest) },
    },
    [`${prefix}/authorize/{uid}`]: { get: { ...authorize, summary: 'Continue after the approval' } },
    [`${prefix}/token`]: { post: token },
    [`${prefix}/revoke`]: { post: revoke },
    [`${prefix}/register`]: { post: register },
    [`${prefix}/register/{client_id}`]: client,
    [`${prefix}/jwks`]: { get: keys },
    [`${prefix}/.well-known/openid-configuration`]: { get: serverMetadata },
  }
  return { covers }
}
