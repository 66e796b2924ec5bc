import type { Revision } from './suite.ts'

const prompts = 'Parley has no prompts: the skills of agents are tools.'
const fixed =
  'The scenario reads fixed `test://` resources. The resources of Parley are the artifacts of tasks.'
const sampling = "Parley does not use the client's model."
const roots = "Parley does not read the client's folders."
const logs =
  'Parley does not send logs of agents to clients. Messages about the progress of a task are `notifications/progress`.'
const withoutState =
  'The scenario answers a question that was not asked: it sends `inputResponses` without the `requestState` of a first call. In Parley a ' +
  'question belongs to a task, which the state names, so that the call creates a task and the question is returned.'

/** Why a scenario or one check of it (`scenario:check`) does not apply or fails. */
type Explanations = Readonly<Record<string, string>>

const both: Explanations = {
  'completion-complete': 'Parley has nothing to complete: no prompts and no resource templates.',
  'prompts-list': prompts,
  'prompts-get-simple': prompts,
  'prompts-get-with-args': prompts,
  'prompts-get-embedded-resource': prompts,
  'prompts-get-with-image': prompts,
  'resources-read-text': fixed,
  'resources-read-binary': fixed,
  'resources-templates-read': fixed,
}

/** Failures of the suite that are accepted, with the reason. `npm test` fails if one of them passes. */
export const explained: Readonly<Record<Revision, Explanations>> = {
  '2026-07-28': {
    ...both,
    'input-required-result-basic-sampling': sampling,
    'input-required-result-basic-list-roots': roots,
    'input-required-result-multiple-input-requests': `The tool must request sampling and roots. ${sampling} ${roots}`,
    'input-required-result-non-tool-request': prompts,
    'input-required-result-ignore-extra-params': withoutState,
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
