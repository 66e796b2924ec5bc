import { type InteropDeployment, startDeployment } from '../interop/deployment.ts'

/** A gateway with the agent of the conformance suite, at which tools that take a second return a task. */
export async function startTestedServer(): Promise<InteropDeployment & { mcp: URL }> {
  const deployment = await startDeployment(['../tools/testing/mcp-agent'], { MCP_TASK_AFTER_MS: '500' })
  return { ...deployment, mcp: new URL('agents/conformance/mcp', deployment.gateway) }
}
