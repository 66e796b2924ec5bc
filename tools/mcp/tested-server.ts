import { type InteropDeployment, startDeployment } from '../interop/deployment.ts'
import { startBearerProxy } from './bearer-proxy.ts'
import { failuresOf } from './results.ts'
import { type Revision, runScenario, runServerSuite, type ScenarioRun } from './suite.ts'

/** A gateway with the agent of the conformance suite, at which tools that take a second return a task. */
export const startTestedServer = () =>
  startDeployment(['../tools/testing/mcp-agent'], { MCP_TASK_AFTER_MS: '500' })

/**
 * Runs the suite against the MCP server of the agent. Scenarios that fail without an explanation run again, because some
 * checks wait only half a second for an answer.
 */
export async function runRevision(
  { gateway, token }: InteropDeployment,
  revision: Revision,
): Promise<ScenarioRun[]> {
  await using proxy = await startBearerProxy(new URL('agents/conformance/mcp', gateway), token)
  const runs = []
  for (const run of await runServerSuite(proxy.url, revision)) {
    const isExplained = failuresOf(revision, [run]).every(({ explanation }) => explanation !== undefined)
    const checks = isExplained ? run.checks : await runScenario(proxy.url, revision, run.scenario)
    runs.push({ ...run, checks })
  }
  return runs
}
