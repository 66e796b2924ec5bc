import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import type { InteropDeployment } from '../interop/deployment.ts'
import { freePort } from '../testing/port.ts'
import { checksOf, runConformance, type ScenarioRun } from './suite.ts'

const scenarios = ['authorization-server-metadata-endpoint', 'authorization-code-grant']

/** Runs the suite for authorization servers against the OAuth server of the gateway and approves its request. */
export async function runAuthorizationSuite(deployment: InteropDeployment): Promise<ScenarioRun[]> {
  await using results = await mkdtempDisposable(path.join(os.tmpdir(), 'parley-mcp-'))
  const port = await freePort()
  const clientId = await registerClient(deployment, `http://127.0.0.1:${port}/callback`)
  const settings = path.join(results.path, 'settings.json')
  await writeFile(settings, JSON.stringify({ url: `${deployment.gateway}oauth2`, clientId, port }))
  const approvals: Promise<void>[] = []
  await runConformance(['authorization', '--file', settings, '--output-dir', results.path], (line) => {
    if (line.startsWith(`${deployment.gateway}oauth2/`)) approvals.push(approve(line, deployment))
  })
  await Promise.all(approvals)
  const runs = scenarios.map(async (scenario) => ({
    scenario,
    isRequired: true,
    checks: await checksOf(results.path, `authorization-server-${scenario}`),
  }))
  return Promise.all(runs)
}

async function registerClient({ gateway, dataDir }: InteropDeployment, redirectUri: string): Promise<string> {
  const initial = await readFile(path.join(dataDir, 'oauth', 'initial-access-token'), 'utf8')
  const registered = await fetch(`${gateway}oauth2/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'MCP conformance suite',
      application_type: 'native',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code'],
      token_endpoint_auth_method: 'none',
    }),
  })
  return z.object({ client_id: z.string() }).parse(await registered.json()).client_id
}

/** Opens the authorization request as a browser does, enters the sign-in code and approves. */
async function approve(address: string, { dataDir }: InteropDeployment): Promise<void> {
  const code = await readFile(path.join(dataDir, 'oauth', 'sign-in-code'), 'utf8')
  const cookies = new Map<string, string>()
  const open = async (url: string, form?: Record<string, string>) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const body = form && { method: 'POST', body: new URLSearchParams(form) }
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie }, ...body })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    return location === null ? undefined : new URL(location, url).href
  }
  const page = await open(address)
  if (page === undefined) return
  await open(page)
  let next = await open(page, { decision: 'approve', code: code.trim() })
  while (next !== undefined) next = await open(next)
}
