/** Failures of the kit that do not come from the agent: part of a test's name or an ID, and the reason. */
const explained: readonly (readonly [name: string, reason: string])[] = [
  [
    'test_sensitive_information_protection',
    'The test refuses cards that contain the words "localhost", "127.0.0.1", "token" or "credential". A card with an ' +
      'OAuth scheme contains the token URL, and a local agent has a local address.',
  ],
  ['test_https_url_in_agent_card', 'The agent of the run has no TLS.'],
  [
    'test_task_state_transitions',
    'The test expects a task in `submitted` or `working` as the answer of a send. The agent pauses immediately, because other ' +
      'tests of this branch continue and cancel the task, and a blocking send waits for the pause.',
  ],
]

export function explanationOf(name: string): string | undefined {
  return explained.find(([part]) => name.includes(part))?.[1]
}
