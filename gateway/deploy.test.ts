import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { testAgent } from '@parley/agent/testing'
import { agentSettings, commonSettings, gatewaySettings } from '@parley/kit/process/settings'
import { price } from '@parley/tools/testing/paid-agent'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { gateway, gatewayForEachTest } from './testing.ts'

interface Service {
  image?: string
  build?: string
  read_only?: boolean
  cap_drop?: string[]
  environment?: Record<string, unknown>
  ports?: string[]
  volumes?: string[]
  networks?: string[] | { house: { ipv4_address: string } }
  extra_hosts?: string[]
  user?: string
  command?: string | string[]
  entrypoint?: string[]
  deploy?: { replicas: number }
}

const read = (file: string) => readFileSync(file, 'utf8')
const compose = parse(read('docker-compose.full.yml'), { merge: true }) as {
  services: Record<string, Service>
  volumes: Record<string, unknown>
}
const services = Object.entries(compose.services)
const ofParley = services.filter(([, { build }]) => build !== undefined)
const nameOf = /^(?:http|agent|gateway|nodejs|process)_\w+$/

/** Returns the metric names in a PromQL expression, with the series of histograms and summaries reduced to the base name. */
function seriesIn(query: string): string[] {
  const words = query.replaceAll(/"[^"]*"/g, '').match(/[a-z_]\w+/g) ?? []
  return words.filter((word) => nameOf.test(word) && word !== 'agent_id')
}

const runs = (program: string) => spawnSync(program, ['--version']).error === undefined

describe('monitoring', () => {
  gatewayForEachTest()

  test('a running agent or gateway exports every metric that the alerts and the dashboard use', async () => {
    await using agent = await testAgent({
      name: 'paid',
      description: 'p',
      skills: [{ id: 's', name: 'S', description: 's', tags: [] }],
      executionCost: price,
      handle: () => 'x',
    })
    const metrics = await Promise.all(
      [agent.url, gateway().addresses.local].map(async (address) =>
        (await fetch(`${address}/metrics`)).text(),
      ),
    )
    const exported = new Set(
      metrics.flatMap((text) => [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name)),
    )
    const queried = [
      read('deploy/alerts.yml'),
      read('deploy/grafana/parley.json').replaceAll('\\"', "'"),
    ].flatMap((text) =>
      [...text.matchAll(/"?expr"?: (?:\|\n((?: {10,}.*\n)+)|(.*))/g)].flatMap(([all]) =>
        seriesIn(all.replaceAll("'", '"').replace(/^"expr": "/, '')),
      ),
    )
    expect(new Set(queried).size).toBeGreaterThan(10)
    const missing = queried.filter(
      (name) => !exported.has(name) && !exported.has(name.replace(/_(bucket|sum|count)$/, '')),
    )
    expect(missing).toEqual([])
  })
})

test.skipIf(!runs('promtool'))(
  'the alert rules pass their tests, and Prometheus accepts its configuration (needs promtool)',
  () => {
    for (const args of [
      ['test', 'rules', 'alerts.cases.yml'],
      ['check', 'config', 'prometheus.yml'],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: 'deploy', encoding: 'utf8' })
      expect(`${stdout}${stderr}`).toContain('SUCCESS')
      expect(status).toBe(0)
    }
  },
)

test('every alert has a severity, a description and a link to its section of the runbook', () => {
  const { groups } = parse(read('deploy/alerts.yml')) as {
    groups: {
      rules: {
        alert: string
        labels: { severity: string }
        annotations: { summary: string; runbook: string }
      }[]
    }[]
  }
  const rules = groups.flatMap((group) => group.rules)
  expect(rules.length).toBeGreaterThan(10)
  const book = read('docs/operations.md')
  for (const { alert, labels, annotations } of rules) {
    expect(['page', 'ticket']).toContain(labels.severity)
    expect(annotations.summary).not.toBe('')
    expect(annotations.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`)
    expect(book).toContain(`### ${alert}\n`)
  }
})

test('the commands and options in the runbook exist', () => {
  const [, book = ''] = /\n## Runbook\n([\s\S]*?)(?:\n## |$)/.exec(read('docs/operations.md')) ?? []
  const used = [...book.matchAll(/npx parley ([^`\n]+)`/g)].flatMap(([, line]) => line ?? [])
  expect(used.length).toBeGreaterThan(30)
  const sources = read('cli/main.ts')
  for (const line of used) {
    const [name = ''] = line.split(' ')
    const [, rest = ''] = new RegExp(`\\n    '?${name}'?: \\{([\\s\\S]*?)\\n    \\}`).exec(sources) ?? []
    const [, file] = /import\('\.\/(.+?)'\)/.exec(rest) ?? []
    const command = file === undefined ? read('cli/server/operate.ts') : read(path.join('cli', file))
    expect([line, rest]).toEqual([line, expect.stringContaining('summary')])
    const options = [...line.matchAll(/--[a-z-]+/g)].map(([option]) => option)
    expect([line, options.filter((option) => !command.includes(`'${option}`))]).toEqual([line, []])
  }
})

describe('docker-compose.full.yml', () => {
  test('gateways and agents run without privileges on a read-only root file system and share a store and a queue', () => {
    expect(ofParley.map(([name]) => name)).toEqual(['gateway-1', 'gateway-2', 'calculator', 'summarizer'])
    for (const [, service] of ofParley) {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
      expect(service.environment).toMatchObject({
        STORE_URL: expect.stringContaining('mongodb://'),
        REDIS_URL: expect.any(String),
      })
    }
  })

  test('images that start their server from a shell do not run it as root', () => {
    const shells = services.filter(([, { command }]) => Array.isArray(command) && command[0] === 'sh')
    expect(shells.map(([name]) => name)).toEqual(['redis'])
    for (const [, { user = '' }] of shells) expect(user).toMatch(/^[1-9]/)
  })

  test('the load balancer addresses each gateway by a stable address, even while the gateway is down', () => {
    const fixed = ofParley.flatMap(([name, { networks }]) =>
      networks === undefined || Array.isArray(networks) ? [] : [`${name}:${networks.house.ipv4_address}`],
    )
    expect(fixed.map((one) => one.split(':')[0])).toEqual(['gateway-1', 'gateway-2'])
    expect(compose.services['balancer']?.extra_hosts).toEqual(fixed)
  })

  test('the OAuth server has an operator client, so that agents can be admitted', () => {
    expect(compose.services['hydra-clients']?.environment).toHaveProperty('OPERATOR_CLIENT_SECRET')
    expect(read('deploy/hydra-clients.sh')).toMatch(/^make parley-operator .*agent:admin'$/m)
  })

  test('the file contains only settings that Parley reads', () => {
    const known = { ...commonSettings, ...gatewaySettings, ...agentSettings, AGENT: true }
    const given = ofParley.flatMap(([, { environment }]) => Object.keys(environment ?? {}))
    expect(given.filter((name) => !(name in known))).toEqual([])
  })

  test('the file publishes ports only on loopback, and never those of the database, Redis or the OAuth admin API', () => {
    const published = services.flatMap(([, { ports }]) => ports ?? [])
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
    expect(new Set(published.map((port) => port.split(':').at(-1)))).toEqual(
      new Set(['3000', '4444', '8080', '9090']),
    )
  })

  test('the file contains no secrets, because each secret is a required variable', () => {
    const secrets = services.flatMap(([, { environment }]) =>
      Object.entries(environment ?? {}).filter(([name]) => /PASSWORD|SECRET/.test(name)),
    )
    expect(secrets.length).toBeGreaterThan(5)
    for (const [, value] of secrets) expect(value).toMatch(/^\$\{\w+:\?set /)
  })

  test('every image has a version, every mounted file exists and every volume is declared', () => {
    for (const [, { image = 'parley:built', volumes = [] }] of services) {
      expect(image).toMatch(/^parley$|:(?!latest)\S+$/)
      for (const volume of volumes) {
        const [from = ''] = volume.split(':')
        expect(from.startsWith('./') ? existsSync(from) : from in compose.volumes).toBe(true)
      }
    }
  })

  test('Prometheus scrapes each gateway and agent, the load balancer uses each gateway, and each agent has a client', () => {
    const names = ofParley.map(([name]) => name)
    const [prometheus, nginx] = [read('deploy/prometheus.yml'), read('deploy/nginx.conf')]
    for (const name of names) expect(prometheus).toMatch(new RegExp(`\\b${name}\\b`))
    for (const name of names.filter((one) => one.startsWith('gateway')))
      expect(nginx).toContain(`server ${name}:7400`)
    const agents = names.filter((name) => !name.startsWith('gateway'))
    expect(compose.services['hydra-clients']?.environment?.['AGENTS']).toBe(agents.join(' '))
    for (const name of agents) expect(globSync(`agents/${name}/agent.ts`)).toHaveLength(1)
  })
})
