import { useEffect, useState } from 'preact/hooks'
import { isAborted } from '../../api.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Page } from '../../components/page.js'
import { Skeleton } from '../../components/states.js'
import { Tabs } from '../../components/tabs.js'
import { toast } from '../../components/toast.js'
import { asApiError } from '../../load.js'
import { hrefOf, navigate, route } from '../../router.js'
import { AgentPicker } from './agent-picker.js'
import { Composer } from './composer.js'
import { isPaused } from './conversation.js'
import { Raw } from './raw.js'
import { automatic } from './requests.js'
import { Talk } from './talk.js'
import { TurnView } from './turn-view.js'
import { Welcome } from './welcome.js'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A chat with any agent, or with those that the gateway chooses. The conversation is in the URL, so it can be reloaded. */
export default function Try() {
  const { query } = route.value
  const agent = query.get('agent') || automatic
  const given = query.get('context') ?? ''
  const contextId = uuid.test(given) ? given : undefined
  const { talk, loading } = useTalk(agent, contextId)
  const start = (/** @type {string} */ slug) => navigate(hrefOf('/console/try', { agent: slug }))
  const send = (/** @type {import('./conversation.js').Part[]} */ parts) => {
    navigate(hrefOf('/console/try', { agent, context: talk.contextId }), { replace: true })
    const paused = talk.turns.peek().findLast(({ state }) => isPaused(state))
    void (paused === undefined ? talk.send(parts) : talk.reply(paused.key, parts))
  }
  const command = agent === automatic ? 'npx parley send "…"' : `npx parley send ${agent} "…"`
  return html`<${Page} title="Try it" command=${command} actions=${html`
    <${AgentPicker} value=${agent} pick=${start} />
    <button type="button" class="button" onClick=${() => start(agent)} disabled=${talk.turns.value.length === 0}><${Icon} name="plus" />New conversation</button>`}>
    <${Tabs} label="Views of the conversation" tabs=${[
      {
        id: 'conversation',
        title: 'Conversation',
        content: () =>
          html`<${Conversation} talk=${talk} loading=${loading} send=${send} text=${query.get('text') ?? ''} />`,
      },
      {
        id: 'raw',
        title: html`Request and response <span class="count">${talk.exchanges.list.value.length}</span>`,
        content: () => html`<${Raw} exchanges=${talk.exchanges.list.value} />`,
      },
    ]} />
  <//>`
}

/**
 * The conversation of the URL. The first message of a new one puts its ID there, which does not start another.
 * @param {string} agent
 * @param {string | undefined} contextId
 */
function useTalk(agent, contextId) {
  const [talk, setTalk] = useState(() => new Talk(agent, contextId ?? crypto.randomUUID()))
  const [loading, setLoading] = useState(contextId !== undefined)
  const isOther = talk.agent !== agent || (contextId ?? talk.contextId) !== talk.contextId
  const isLeft = contextId === undefined && talk.turns.value.length > 0
  useEffect(() => {
    if (isOther || isLeft) setTalk(new Talk(agent, contextId ?? crypto.randomUUID()))
  }, [agent, contextId])
  useEffect(() => {
    if (contextId === talk.contextId && talk.turns.peek().length === 0) {
      setLoading(true)
      talk
        .load()
        .catch((error) => {
          if (!isAborted(error))
            toast(`The conversation could not be loaded. ${asApiError(error).message}`, 'bad')
        })
        .finally(() => setLoading(false))
    }
    return () => talk.close()
  }, [talk])
  return { talk, loading }
}

/** @param {{ talk: Talk, loading: boolean, text: string, send: (parts: import('./conversation.js').Part[]) => void }} props */
function Conversation({ talk, loading, text, send }) {
  const turns = talk.turns.value
  const active = talk.active.value
  const paused = turns.findLast(({ state }) => isPaused(state))
  useScrollToEnd(turns)
  return html`<div class="chat">
    ${loading && turns.length === 0 && html`<${Skeleton} lines=${4} label="Loading the conversation" />`}
    ${!loading && turns.length === 0 && html`<${Welcome} agent=${talk.agent} send=${send} />`}
    <div class="chat-turns" role="log" aria-label="Conversation" aria-busy=${active !== undefined}>
      ${turns.map((turn) => html`<${TurnView} key=${turn.key} turn=${turn} talk=${talk} isActive=${active === turn.key} />`)}
    </div>
    <${Composer} text=${text} isBusy=${active !== undefined} answersTo=${paused} send=${send} />
  </div>`
}

/** @param {readonly unknown[]} turns */
function useScrollToEnd(turns) {
  useEffect(() => {
    if (turns.length === 0) return
    const distance = document.documentElement.scrollHeight - window.innerHeight - window.scrollY
    // A reader who has scrolled up keeps the position.
    if (distance < 400) window.scrollTo({ top: document.documentElement.scrollHeight })
  }, [turns])
}
