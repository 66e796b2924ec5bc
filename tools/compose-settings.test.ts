import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { agentSettings, cliSettings, commonSettings, gatewaySettings } from '@parley/kit/process/settings'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { agentSettingsFiles } from './agent-settings.ts'
import { composeFiles, imageSettings, tables, withSettings } from './compose-settings.ts'
import { envExampleFile } from './env-example.ts'

interface Service {
  build?: string
  command?: string[]
  environment?: Record<string, string>
}

const servicesOf = (file: string) => {
  const compose = parse(readFileSync(file, 'utf8'), { merge: true }) as { services: Record<string, Service> }
  return Object.entries(compose.services).filter(([, { build }]) => build !== undefined)
}

const ofAgents = agentSettingsFiles().flatMap(({ settings }) => [
  ...settings.env,
  ...(settings.required ?? []),
])

/** The settings that the processes of a service read. */
function readBy(service: Service): string[] {
  const agent = service.environment?.['AGENT']
  if (agent !== undefined) {
    const own = agentSettingsFiles().find((one) => one.agent === agent)?.settings.env ?? []
    return [...Object.keys({ ...commonSettings, ...agentSettings }), ...own]
  }
  const ofGateway = Object.keys({ ...commonSettings, ...gatewaySettings })
  if (service.command?.includes('gateway')) return ofGateway
  // The supervisor sets the others for its agents.
  return [...ofGateway, ...(tables['supervised agents'] ?? []), ...ofAgents]
}

describe.each(composeFiles)('%s', (file) => {
  test('contains the settings from the tables (`npm run env-example` writes them)', () => {
    const text = readFileSync(file, 'utf8')
    expect(text).toBe(withSettings(text))
  })

  test.each(servicesOf(file))(
    'service %s: every setting it reads is passed on or fixed',
    (_name, service) => {
      const given = Object.keys(service.environment ?? {})
      // The address of an agent process is set where the process starts.
      const fixed = [
        ...imageSettings,
        ...(service.environment?.['AGENT'] === undefined ? [] : ['PUBLIC_URL']),
      ]
      const missing = readBy(service).filter((name) => !given.includes(name) && !fixed.includes(name))
      expect(missing).toEqual([])
    },
  )

  test.each(servicesOf(file))(
    'service %s: a setting comes from the setting of the same name',
    (_name, service) => {
      const crossed = Object.entries(service.environment ?? {}).filter(
        ([name, value]) => /^\$\{\w+:-\}$/.test(value) && value !== `\${${name}:-}`,
      )
      expect(crossed).toEqual([])
    },
  )
})

test('.env.example, the compose files and the tables of settings name the same settings', () => {
  const tabled = Object.keys({ ...commonSettings, ...gatewaySettings, ...agentSettings, ...cliSettings })
  const example = Object.keys(parseEnv(readFileSync(envExampleFile, 'utf8')))
  expect(example.sort()).toEqual([...new Set([...tabled, ...ofAgents])].sort())
  const composed = composeFiles.flatMap((file) =>
    servicesOf(file).flatMap(([, { environment }]) => Object.keys(environment ?? {})),
  )
  // AGENT is the folder that a service of docker-compose.full.yml runs.
  expect(composed.filter((name) => !example.includes(name) && name !== 'AGENT')).toEqual([])
  // The command line runs outside the containers.
  const ofServers = example.filter((name) => !(name in cliSettings) && !imageSettings.includes(name))
  const dropped = ofServers.filter((name) => !composed.includes(name))
  expect(dropped).toEqual([])
})

test('keeps the text outside the blocks', () => {
  const text = [
    'environment:',
    '  # settings: gateway (npm run env-example)',
    '  # end of settings',
    '  REGISTRY_OPEN: "yes"',
  ].join('\n')
  const written = withSettings(text)
  expect(written).toContain('  ROUTE_LEARNING: ${ROUTE_LEARNING:-}\n')
  expect(written.match(/REGISTRY_OPEN/g)).toHaveLength(1)
  expect(withSettings(written)).toBe(written)
  expect(() => withSettings(text.replace('gateway', 'nothing'))).toThrow('no table of settings "nothing"')
})
