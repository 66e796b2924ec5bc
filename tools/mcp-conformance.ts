/**
 * `npm run conformance`: runs the conformance suite of MCP (npm `@modelcontextprotocol/conformance`) against a gateway with
 * the agent of `tools/testing/mcp-agent`: the scenarios for servers of each revision and those for authorization servers.
 * Prints the results; `--write` also writes them to docs/conformance.md. The exit code is 1 if a result differs from
 * `tools/mcp/explained.ts`.
 */
import { parseArgs } from 'node:util'
import { runAuthorizationSuite } from './mcp/authorization.ts'
import { printRuns, sectionOf, unexpectedOf } from './mcp/results.ts'
import { revisions, suiteVersion } from './mcp/suite.ts'
import { runRevision, startTestedServer } from './mcp/tested-server.ts'
import { writeSections } from './tck/conformance.ts'

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } })
console.log(`@modelcontextprotocol/conformance ${await suiteVersion()}`)
const sections = new Map<string, string>()
const unexpected: string[] = []
await using deployment = await startTestedServer()

for (const revision of revisions) {
  const runs = await runRevision(deployment, revision)
  printRuns(`MCP ${revision}`, revision, runs)
  unexpected.push(...unexpectedOf(revision, runs))
  sections.set(`MCP ${revision}`, sectionOf(revision, runs))
}
const authorization = await runAuthorizationSuite(deployment)
printRuns('Authorization server', undefined, authorization)
unexpected.push(...unexpectedOf(undefined, authorization))
sections.set('MCP authorization', sectionOf(undefined, authorization))

for (const line of unexpected) console.log(`UNEXPECTED: ${line}`)
if (values.write) await writeSections(sections)
if (unexpected.length > 0) process.exitCode = 1
