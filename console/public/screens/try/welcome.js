import { api } from '../../api.js'
import { html } from '../../components/html.js'
import { EmptyState } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { useLoad } from '../../load.js'
import { automatic } from './requests.js'

const examplesMax = 4

/**
 * What to do in an empty conversation.
 * @param {{ agent: string, send: (parts: import('./conversation.js').Part[]) => void }} props
 */
export function Welcome({ agent, send }) {
  const { data, error } = useLoad(agent, async (signal) =>
    agent === automatic ? undefined : api(`/registry/agents/${encodeURIComponent(agent)}`, { signal }),
  )
  if (error?.status === 404)
    return html`<${EmptyState} title="There is no agent with this name" icon="search">
      Choose one in the field Agent above, or <code>auto</code>, with which the gateway chooses.
    <//>`
  const title = agent === automatic ? 'The gateway chooses an agent for your message' : 'Send a first message'
  const examples = examplesOf(data)
  return html`<${EmptyState} title=${title} icon="chat">
    ${
      agent === automatic
        ? 'Write what you need. The answer shows which agent was chosen and why. Later messages of the conversation go to the same agent.'
        : html`<${Text} value=${data?.description} none="Write what you need." max=${400} />`
    }
    ${
      examples.length > 0 &&
      html`<span class="suggestions">
      ${examples.map((example) => html`<button key=${example} type="button" class="button" onClick=${() => send([{ kind: 'text', text: example }])}><${Text} value=${example} max=${90} /></button>`)}
    </span>`
    }
  <//>`
}

/** @param {any} entry */
function examplesOf(entry) {
  /** @type {{ examples?: unknown }[]} */
  const skills = Array.isArray(entry?.skills) ? entry.skills : []
  return skills
    .flatMap(({ examples }) => (Array.isArray(examples) ? examples : []))
    .filter((example) => typeof example === 'string' && example.length < 200)
    .slice(0, examplesMax)
}
