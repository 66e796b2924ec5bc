import type { Revision } from './suite.ts'

const prompts = 'Parley has no prompts: the skills of agents are tools.'
const fixed =
  'The scenario reads fixed `test://` resources. The resources of Parley are the artifacts of tasks.'
const sampling = "Parley does not use the client's model."
const roots = "Parley does not read the client's folders."
const logs = 'Parley does not send logs of agents to clients. Progress messages are `notifications/progress`.'
const noCapability =
  'No tool requires a capability: a client without elicitation receives the question of an agent as text.'
const noParamHeaders = 'No tool declares `x-mcp-header`.'

/** Why a scenario or one check of it (`scenario:check`) does not apply or fails. */
type Explanations = Readonly<Record<string, string>>

const both: Explanations = {
  'completion-complete':
    'There is nothing to complete: no prompts, and a template only for the addresses of artifacts.',
  'prompts-get-simple': prompts,
  'prompts-get-with-args': prompts,
  'prompts-get-embedded-resource': prompts,
  'prompts-get-with-image': prompts,
  'resources-read-text': fixed,
  'resources-read-binary': fixed,
  'resources-templates-read': fixed,
  'json-schema-2020-12':
    'The schemas of skills come from zod, which writes no `$anchor`. Schemas of registered MCP servers are passed on unchanged.',
}

/** Failures of the suite that are accepted, with the reason. `npm test` fails if one of them passes. */
export const explained: Readonly<Record<Revision, Explanations>> = {
  '2026-07-28': {
    ...both,
    'server-stateless:sep-2575-server-rejects-undeclared-capability': noCapability,
    'server-stateless:sep-2575-missing-capability-http-400': noCapability,
    'input-required-result-basic-sampling': sampling,
    'input-required-result-basic-list-roots': roots,
    'input-required-result-multiple-input-requests': `The tool must request sampling and roots. ${sampling} ${roots}`,
    'input-required-result-capability-check': `The client declares sampling only. ${sampling}`,
    'input-required-result-non-tool-request': prompts,
    'tasks-required-task-error':
      'No tool requires the extension: without it, a call waits for the answer or returns the ID of the task.',
    'tasks-mrtr-composition':
      'The tool must ask before its task exists. An agent asks within its task, so a client that knows tasks receives the task.',
    'http-custom-header-server-validation': noParamHeaders,
  },
  '2025-11-25': {
    ...both,
    'logging-set-level': logs,
    'tools-call-with-logging': logs,
    'tools-call-sampling': sampling,
    'resources-subscribe': fixed,
    'resources-unsubscribe': fixed,
  },
}
