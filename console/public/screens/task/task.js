import { useEffect, useState } from 'preact/hooks'
import { api, rpc } from '../../api.js'
import { isEnded, StateBadge } from '../../components/badge.js'
import { JsonView } from '../../components/code.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Page } from '../../components/page.js'
import { Loading, Notice } from '../../components/states.js'
import { Tabs } from '../../components/tabs.js'
import { Text } from '../../components/text.js'
import { toast } from '../../components/toast.js'
import { liveState, useLive } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf, navigate, route, setQuery } from '../../router.js'
import { taskIdOf } from '../overview/first-task.js'
import { Pause } from './answer.js'
import { Artifacts, artifactsOf } from './artifacts.js'
import { CopyAs, firstParts } from './copy-as.js'
import { Events, Messages, messagesOf } from './history.js'
import { TaskSide } from './task-side.js'
import { Timeline } from './timeline.js'

/** @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail */

/**
 * One task: what happened when, at which agents, and with which result.
 *
 * @param {{ params: Record<string, string> }} props
 */
export default function TaskScreen({ params }) {
  const id = params['id'] ?? ''
  const agent = route.value.query.get('agent') ?? undefined
  const loaded = useApi(`/operator/tasks/${encodeURIComponent(id)}`, { agent })
  useFollowing(loaded)
  const task = /** @type {TaskDetail | undefined} */ (loaded.data)
  const title = task?.text
    ? html`<${Text} value=${firstLine(task.text)} max=${140} />`
    : html`Task <span class="mono">${id.slice(0, 13)}</span>`
  return html`<${Page} title=${title} name=${task?.text ? firstLine(task.text) : `Task ${id.slice(0, 13)}`}
    crumbs=${[{ href: '/console/tasks', text: 'Tasks' }]} command=${`npx parley task ${id} --timeline`}
    actions=${task && html`<${Actions} task=${task} reload=${loaded.reload} />`}>
    <${Loading} loaded=${loaded} lines=${10}>${(/** @type {TaskDetail} */ data) => html`<${Content} task=${data} reload=${loaded.reload} />`}<//>
  <//>`
}

/** @param {string} text */
function firstLine(text) {
  return text.trim().split('\n', 1)[0]?.slice(0, 140) ?? ''
}

/** @param {{ task: TaskDetail, reload: () => void }} props */
function Content({ task, reload }) {
  const tab = route.value.query.get('tab') ?? undefined
  const tabs = [
    {
      id: 'results',
      title: withCount('Results', artifactsOf(task).length),
      content: () => html`<${Artifacts} task=${task} />`,
    },
    {
      id: 'messages',
      title: withCount('Messages', messagesOf(task).length),
      content: () => html`<${Messages} task=${task} />`,
    },
    {
      id: 'events',
      title: withCount('Events', task.events.length),
      content: () => html`<${Events} task=${task} />`,
    },
    { id: 'json', title: 'JSON', content: () => html`<${JsonView} value=${task} open=${1} />` },
  ]
  return html`
    ${
      task.recorded_only &&
      html`<${Notice}>This task belongs to an external agent. The gateway shows what it recorded itself: the route and the decision, not the agent’s own events.<//>`
    }
    <${Pause} task=${task} reload=${reload} />
    ${!task.recorded_only && html`<${Timeline} task=${task} />`}
    <div class="split">
        <section class="card" aria-label="Details"><div class="card-body">
          <${Tabs} label="Details" tabs=${tabs} selected=${tab} onSelect=${(/** @type {string} */ next) => setQuery({ tab: next === 'results' ? undefined : next }, { replace: true })} />
        </div></section>
      <${TaskSide} task=${task} />
    </div>
  `
}

/**
 * @param {string} title
 * @param {number} count
 */
function withCount(title, count) {
  return count === 0 ? title : html`${title} <span class="count">${count}</span>`
}

/** @param {{ task: TaskDetail, reload: () => void }} props */
function Actions({ task, reload }) {
  const [copies, setCopies] = useState(false)
  const canRepeat = task.task !== null
  return html`
    <${StateBadge} state=${task.state} />
    ${canRepeat && html`<button type="button" class="button" onClick=${() => runAgain(task)}><${Icon} name="reload" />Run again</button>`}
    <button type="button" class="button" onClick=${() => setCopies(true)}><${Icon} name="copy" />Copy as code</button>
    ${!isEnded(task.state) && !task.recorded_only && html`<button type="button" class="button danger" onClick=${() => cancel(task, reload)}><${Icon} name="stop" />Cancel</button>`}
    ${copies && html`<${CopyAs} task=${task} onClose=${() => setCopies(false)} />`}
  `
}

/**
 * @param {TaskDetail} task
 * @param {() => void} reload
 */
async function cancel(task, reload) {
  const children = task.children.filter(({ ended }) => ended !== true).length
  const isDone = await confirm({
    title: 'Cancel this task?',
    body: html`<p>
      <${Text} value=${task.agent} max=${60} /> stops working on it. ${children > 0 ? `Its ${children} unfinished tasks at other agents are canceled as well. ` : ''}A canceled
      task cannot be continued. Payments that were settled are not refunded.
    </p>`,
    action: 'Cancel the task',
    danger: true,
    run: () =>
      api(`/operator/tasks/${encodeURIComponent(task.task_id)}/cancel`, {
        method: 'POST',
        query: { agent: task.agent },
        body: {},
      }),
  })
  if (!isDone) return
  toast('The task was canceled.')
  reload()
}

/** @param {TaskDetail} task */
async function runAgain(task) {
  let result
  const isDone = await confirm({
    title: 'Run this again?',
    body: html`<p>
      The first message is sent to <strong><${Text} value=${task.agent} max=${60} /></strong> as a new task of yours.
      ${task.payments.length > 0 ? ' The agent may request a payment again.' : ''}
    </p>`,
    action: 'Send it again',
    run: async () => {
      const message = {
        role: 'user',
        kind: 'message',
        messageId: crypto.randomUUID(),
        parts: firstParts(task),
      }
      result = await rpc('message/send', { message }, { agent: task.agent })
    },
  })
  if (isDone && result !== undefined)
    navigate(hrefOf(`/console/tasks/${encodeURIComponent(taskIdOf(result))}`, { agent: task.agent }))
}

/**
 * Loads the task again when it or a task of its chain changes. Without the stream, an unfinished task is read every few seconds.
 *
 * @param {import('../../load.js').Loaded<TaskDetail>} loaded
 */
function useFollowing({ data, reload }) {
  const ids = new Set([data?.task_id, ...(data?.chain ?? []).map(({ task_id: id }) => id)])
  const [due, setDue] = useState(0)
  useLive(['task', 'delivery', 'payment'], ({ type, data: change }) => {
    if (type === 'reset' || ids.has(change?.task_id) || ids.has(change?.parent_id)) setDue((old) => old + 1)
  })
  useEffect(() => {
    if (due === 0) return undefined
    const timer = setTimeout(reload, 250)
    return () => clearTimeout(timer)
  }, [due])
  const isOpen =
    data !== undefined &&
    data.recorded_only !== true &&
    [data, ...data.chain].some(({ state }) => !isEnded(state))
  const isLive = liveState.value === 'open'
  useEffect(() => {
    if (!isOpen) return undefined
    const timer = setInterval(() => document.hidden || reload(), isLive ? 15_000 : 2500)
    return () => clearInterval(timer)
  }, [isOpen, isLive])
}
