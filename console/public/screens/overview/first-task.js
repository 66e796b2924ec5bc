import { rpc } from '../../api.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { ErrorState } from '../../components/states.js'
import { useAction } from '../../load.js'
import { navigate } from '../../router.js'

/** Texts that the bundled agents can handle, by the agent that usually wins them. */
const examples = [
  { agent: 'calculator', text: '12 inch in cm' },
  {
    agent: 'summarizer',
    text: 'Summarize: Parley is a gateway in front of many agents. It chooses an agent for each task, and says why.',
  },
]

/**
 * Shown while nothing has happened yet: sends a first message and opens its task.
 *
 * @param {{ agents: import('../../../types/answers.js').Overview['agents'] }} props
 */
export function FirstTask({ agents }) {
  const example = examples.find(({ agent }) => agents.some((one) => one.agent === agent)) ?? {
    agent: '',
    text: 'Hello! What can you do?',
  }
  const { run, running, error } = useAction(async () => {
    const message = {
      role: 'user',
      kind: 'message',
      messageId: crypto.randomUUID(),
      parts: [{ kind: 'text', text: example.text }],
    }
    const task = await rpc('message/send', { message })
    navigate(`/console/tasks/${encodeURIComponent(taskIdOf(task))}`)
  })
  return html`<section class="card first-task" aria-labelledby="first-task-title">
    <div class="card-body stack">
      <div class="stack-2">
        <h2 id="first-task-title">Run a first task</h2>
        <p class="muted">
          Nothing has happened in the last minutes. Send “${example.text}” without naming an agent: the gateway chooses one, and the next
          page shows every step.
        </p>
      </div>
      ${error && html`<${ErrorState} error=${error} retry=${run} compact=${true} />`}
      <div class="row">
        <button type="button" class="button primary" disabled=${running} onClick=${() => run()}>
          <${Icon} name="play" />${running ? 'Sending …' : 'Run it and follow the task'}
        </button>
        <a class="button" href="/console/try">Write your own message</a>
      </div>
    </div>
  </section>`
}

/**
 * The id of a task in a result of the gateway.
 *
 * @param {any} task
 * @returns {string}
 */
export function taskIdOf(task) {
  return String(task?.task_id ?? task?.id ?? '')
}
