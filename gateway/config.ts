import { type CommonConfig, commonConfig, trimSlash } from '../shared/process/config.ts'
import { ConfigError, commonSettings, gatewaySettings, readSettings } from '../shared/process/settings.ts'

/** What the gateway knows, frozen. */
export interface GatewayConfig extends CommonConfig {
  /** The OAuth server of its own; absent where OAUTH_ISSUER names another. */
  embeddedOAuth: boolean
}

export interface GatewaySecrets {
  oauthClientSecret: string | undefined
}

export interface Settings {
  config: GatewayConfig
  secrets: GatewaySecrets
  /** The whole environment, for the supervisor to take the agents' own settings from. */
  environment: NodeJS.ProcessEnv
}

/** @throws ConfigError with one sentence per fault */
export function gatewayConfig(environment: NodeJS.ProcessEnv = process.env): Settings {
  const values = readSettings({ ...commonSettings, ...gatewaySettings }, environment)
  const common = commonConfig(values)
  const { issuer, clientId } = common.oauth
  if (issuer === undefined && common.production && values.PARLEY_EMBEDDED_OAUTH !== true) {
    throw new ConfigError([
      'NODE_ENV is production: set OAUTH_ISSUER to your OAuth 2.0 server, or PARLEY_EMBEDDED_OAUTH=yes to use the embedded one.',
    ])
  }
  if (issuer !== undefined && (clientId === undefined || values.OAUTH_CLIENT_SECRET === undefined)) {
    throw new ConfigError([
      'OAUTH_ISSUER is set: OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET are needed to ask it about tokens.',
    ])
  }
  return {
    config: Object.freeze({
      ...common,
      publicUrl: trimSlash(common.publicUrl),
      embeddedOAuth: issuer === undefined,
    }),
    secrets: Object.freeze({ oauthClientSecret: values.OAUTH_CLIENT_SECRET }),
    environment: { ...environment },
  }
}
