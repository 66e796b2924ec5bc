import { isObject } from '../jsonrpc/envelope.ts'

/** A JSON object. */
type Fields = Record<string, unknown>

/**
 * How a field counts in a signed card (A2A 1.0, section 8.4.1): fields that are required or have explicit presence are kept
 * unchanged; others are omitted if they have their default value.
 */
interface Field {
  kept?: true
  /** The fields of the message, of each message of a list or, with `map`, of each value of a map. */
  of?: Shape | ((message: Fields) => Shape)
  map?: true
  /** The value that the SDK for Python leaves out in version 0.3. */
  default?: string
}
type Shape = { readonly [field: string]: Field }

const kept: Field = { kept: true }
const plain: Field = {}
const requirement: Shape = { schemes: { map: true, of: { list: plain } } }
const extension: Shape = { uri: plain, description: plain, required: plain, params: plain }
const flow: Shape = {
  authorizationUrl: kept,
  deviceAuthorizationUrl: kept,
  tokenUrl: kept,
  refreshUrl: plain,
  scopes: kept,
  pkceRequired: plain,
}
const flows: Shape = {
  authorizationCode: { of: flow },
  clientCredentials: { of: flow },
  implicit: { of: flow },
  password: { of: flow },
  deviceCode: { of: flow },
}
const scheme: Shape = {
  apiKeySecurityScheme: { of: { description: plain, location: kept, name: kept } },
  httpAuthSecurityScheme: { of: { description: plain, scheme: kept, bearerFormat: plain } },
  oauth2SecurityScheme: {
    of: { description: plain, flows: { kept: true, of: flows }, oauth2MetadataUrl: plain },
  },
  openIdConnectSecurityScheme: { of: { description: plain, openIdConnectUrl: kept } },
  mtlsSecurityScheme: { of: { description: plain } },
}
const skill: Shape = {
  id: kept,
  name: kept,
  description: kept,
  tags: kept,
  examples: plain,
  inputModes: plain,
  outputModes: plain,
  securityRequirements: { of: requirement },
}
const capabilities: Shape = {
  streaming: kept,
  pushNotifications: kept,
  extensions: { of: extension },
  extendedAgentCard: kept,
}
const address: Shape = { url: kept, protocolBinding: kept, tenant: plain, protocolVersion: kept }
/** The fields of the AgentCard of A2A 1.0.1 without `signatures`. */
const cardOfV1: Shape = {
  name: kept,
  description: kept,
  supportedInterfaces: { kept: true, of: address },
  provider: { of: { url: kept, organization: kept } },
  version: kept,
  documentationUrl: kept,
  capabilities: { kept: true, of: capabilities },
  securitySchemes: { map: true, of: scheme },
  securityRequirements: { of: requirement },
  defaultInputModes: kept,
  defaultOutputModes: kept,
  skills: { kept: true, of: skill },
  iconUrl: kept,
}

const typed = (type: string, fields: Shape): Shape => ({
  type: { default: type },
  description: plain,
  ...fields,
})
const schemesOfV03: Readonly<Record<string, Shape>> = {
  apiKey: typed('apiKey', { in: plain, name: plain }),
  http: typed('http', { scheme: plain, bearerFormat: plain }),
  oauth2: typed('oauth2', {
    oauth2MetadataUrl: plain,
    flows: {
      of: {
        authorizationCode: {
          of: { authorizationUrl: plain, refreshUrl: plain, scopes: plain, tokenUrl: plain },
        },
        clientCredentials: { of: { refreshUrl: plain, scopes: plain, tokenUrl: plain } },
        implicit: { of: { authorizationUrl: plain, refreshUrl: plain, scopes: plain } },
        password: { of: { refreshUrl: plain, scopes: plain, tokenUrl: plain } },
      },
    },
  }),
  openIdConnect: typed('openIdConnect', { openIdConnectUrl: plain }),
  mutualTLS: typed('mutualTLS', {}),
}
const schemeOfV03 = ({ type }: Fields): Shape =>
  (typeof type === 'string' && Object.hasOwn(schemesOfV03, type) && schemesOfV03[type]) || {}
/** The fields of the AgentCard of A2A 0.3.0 without `signatures`. */
const cardOfV03: Shape = {
  additionalInterfaces: { of: { transport: plain, url: plain } },
  capabilities: {
    of: {
      extensions: { of: extension },
      pushNotifications: plain,
      stateTransitionHistory: plain,
      streaming: plain,
    },
  },
  defaultInputModes: plain,
  defaultOutputModes: plain,
  description: plain,
  documentationUrl: plain,
  iconUrl: plain,
  name: plain,
  preferredTransport: { default: 'JSONRPC' },
  protocolVersion: { default: '0.3.0' },
  provider: { of: { organization: plain, url: plain } },
  security: plain,
  securitySchemes: { map: true, of: schemeOfV03 },
  skills: {
    of: {
      description: plain,
      examples: plain,
      id: plain,
      inputModes: plain,
      name: plain,
      outputModes: plain,
      security: plain,
      tags: plain,
    },
  },
  supportsAuthenticatedExtendedCard: plain,
  url: plain,
  version: plain,
}

/**
 * The fields that a signature covers. `card`: every field. `a2a`: only the fields of A2A 1.0, because the official SDKs drop
 * others before they sign or verify. `a2a-without-security`: not `securitySchemes` either. `a2a-v03`: only the fields of A2A
 * 0.3.
 */
export type Coverage = 'card' | 'a2a' | 'a2a-without-security' | 'a2a-v03'

export interface SignedForm {
  form: Record<string, unknown>
  covers: Coverage
  /** Whether verifiers write other characters than those of ASCII as `\uXXXX`. */
  ascii?: true
}

/**
 * Returns the JSON values whose RFC 8785 form verifiers compute for a card. The first is that of the specification. The SDKs
 * for JavaScript and Python remove unknown fields and every empty value, required or not. The one for JavaScript loses the
 * security schemes of a card that its client has read, and the one for Python translates fields of A2A 0.3. In version 0.3, the
 * latter reads the fields of 0.3 only, and leaves out those with a default value.
 */
export function signedForms(card: Record<string, unknown>): SignedForm[] {
  const { signatures: _signatures, ...unsigned } = card
  const { securitySchemes: _schemes, ...withoutSecurity } = unsigned
  const ofSdk = (given: Fields) => withoutEmpty(known(given, cardOfV1))
  return [
    { form: specified(unsigned, cardOfV1), covers: 'card' },
    { form: ofSdk(unsigned), covers: 'a2a' },
    ...(isLegacy(unsigned) ? [{ form: ofSdk(upgraded(unsigned)), covers: 'a2a' } as const] : []),
    { form: ofSdk(withoutSecurity), covers: 'a2a-without-security' },
    ...(typeof card['url'] === 'string'
      ? [
          {
            form: withoutEmpty(withoutDefaults(unsigned, cardOfV03)),
            covers: 'a2a-v03',
            ascii: true,
          } as const,
        ]
      : []),
  ]
}

/** The form of the specification. Fields that it does not define are kept. */
function specified(object: Fields, shape: Shape): Fields {
  const entries = Object.entries(object).flatMap(([name, value]): [string, unknown][] => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (field === undefined) return [[name, value]]
    if (value === null || (field.kept !== true && isDefault(value))) return []
    return [[name, within(value, field, specified)]]
  })
  return Object.fromEntries(entries)
}

function known(object: Fields, shape: Shape): Fields {
  const entries = Object.entries(object).flatMap(([name, value]): [string, unknown][] => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (field === undefined || (field.kept !== true && isDefault(value))) return []
    return [[name, within(value, field, known)]]
  })
  return Object.fromEntries(entries)
}

/** The known fields with a value other than the default. */
function withoutDefaults(object: Fields, shape: Shape): Fields {
  const entries = Object.entries(object).flatMap(([name, value]): [string, unknown][] => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (field === undefined || value === field.default) return []
    return [[name, within(value, field, withoutDefaults)]]
  })
  return Object.fromEntries(entries)
}

/** Applies `convert` to the messages in a field's value. Values of a wrong type are kept. */
function within(value: unknown, { of, map }: Field, convert: typeof known): unknown {
  if (of === undefined) return value
  const one = (item: unknown) =>
    isObject(item) ? convert(item, typeof of === 'function' ? of(item) : of) : item
  if (Array.isArray(value)) return value.map(one)
  if (!isObject(value) || map !== true) return one(value)
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, one(item)]))
}

/** Default values of scalars, lists and maps. */
function isDefault(value: unknown): boolean {
  return value === '' || value === false || value === 0 || (Array.isArray(value) && value.length === 0)
}

function withoutEmpty(card: Fields): Fields {
  const cleaned = cleanedOf(card)
  return isObject(cleaned) ? cleaned : {}
}

function cleanedOf(value: unknown): unknown {
  if (value === '' || value === null) return undefined
  if (Array.isArray(value)) {
    const items = value.map(cleanedOf).filter((item) => item !== undefined)
    return items.length === 0 ? undefined : items
  }
  if (!isObject(value)) return value
  const entries = Object.entries(value)
    .map(([name, item]): [string, unknown] => [name, cleanedOf(item)])
    .filter(([, item]) => item !== undefined)
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Whether the card has fields of A2A 0.3 that clients of 1.0 translate. */
function isLegacy(card: Fields): boolean {
  return 'security' in card || 'protocolVersion' in card || 'supportsAuthenticatedExtendedCard' in card
}

const schemeNames: Readonly<Record<string, string>> = {
  apiKey: 'apiKeySecurityScheme',
  http: 'httpAuthSecurityScheme',
  oauth2: 'oauth2SecurityScheme',
  openIdConnect: 'openIdConnectSecurityScheme',
  mutualTLS: 'mtlsSecurityScheme',
}

/** Translates fields of A2A 0.3 as the SDK for Python does. */
function upgraded(card: Fields): Fields {
  const { security, supportsAuthenticatedExtendedCard, capabilities: given } = card
  const declared = isObject(given) ? given : {}
  const hasExtended = supportsAuthenticatedExtendedCard === true && !('extendedAgentCard' in declared)
  return {
    ...card,
    ...(hasExtended && { capabilities: { ...declared, extendedAgentCard: true } }),
    ...(Array.isArray(security) &&
      !('securityRequirements' in card) && { securityRequirements: security.map(requirementOf) }),
    ...(isObject(card['securitySchemes']) && {
      securitySchemes: Object.fromEntries(
        Object.entries(card['securitySchemes']).map(([name, one]) => [name, schemeOf(one)]),
      ),
    }),
  }
}

function requirementOf(given: unknown): Fields {
  const schemes = isObject(given) ? Object.entries(given) : []
  return { schemes: Object.fromEntries(schemes.map(([name, list]) => [name, { list }])) }
}

function schemeOf(given: unknown): unknown {
  if (!isObject(given)) return given
  const { type, in: location, ...rest } = given
  const name = typeof type === 'string' && Object.hasOwn(schemeNames, type) ? schemeNames[type] : undefined
  if (name === undefined) return given
  return { [name]: { ...rest, ...(location !== undefined && { location }) } }
}

const interfacesMax = 100

/** Returns the addresses of the interfaces in a card that a signature covers. */
export function cardAddresses(card: Record<string, unknown>, covers: Coverage): string[] {
  const { supportedInterfaces, additionalInterfaces, url } = card
  const ofV03 = [additionalInterfaces, [{ url }]]
  const lists = {
    card: [supportedInterfaces, ...ofV03],
    a2a: [supportedInterfaces],
    'a2a-without-security': [supportedInterfaces],
    'a2a-v03': ofV03,
  }[covers]
  return lists
    .flatMap((list): unknown[] => (Array.isArray(list) ? list.slice(0, interfacesMax) : []))
    .flatMap((one) => (isObject(one) && typeof one['url'] === 'string' ? [one['url']] : []))
}
