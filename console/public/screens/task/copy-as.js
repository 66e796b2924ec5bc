import { CodeBlock } from '../../components/code.js'
import { Dialog } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Tabs } from '../../components/tabs.js'
import { session } from '../../session.js'
import { messagesOf } from './history.js'

/** @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail */

/**
 * The first message of a task as a program that sends it again. Each one runs as it is shown, with a token in `TOKEN`.
 *
 * @param {{ task: TaskDetail, onClose: () => void }} props
 */
export function CopyAs({ task, onClose }) {
  const url = `${session.value?.gateway.url ?? location.origin}/agents/${encodeURIComponent(task.agent)}/`
  const parts = firstParts(task)
  const tabs = [
    { id: 'curl', title: 'curl', text: curl(url, parts), needs: 'curl' },
    { id: 'ts', title: 'TypeScript', text: typescript(url, parts), needs: 'Node.js 24 and @parley/client' },
    {
      id: 'python',
      title: 'Python',
      text: python(url, parts),
      needs: 'Python 3.9 and httpx (pip install httpx)',
    },
  ]
  return html`<${Dialog} title="Send this message from a program" onClose=${onClose} wide=${true}>
    <p class="muted">Get a token first: <code>export TOKEN=$(npx parley token)</code></p>
    <${Tabs} label="Language" tabs=${tabs.map(({ id, title, text, needs }) => ({
      id,
      title,
      content: () =>
        html`<div class="stack-2"><${CodeBlock} text=${text} label=${`Copy as ${title}`} /><p class="faint small">Needs ${needs}.</p></div>`,
    }))} />
    <div class="dialog-actions"><button type="button" class="button" onClick=${onClose}>Close</button></div>
  <//>`
}

/**
 * The parts of the first message, without signatures and without the bytes of large files.
 *
 * @param {TaskDetail} task
 * @returns {Record<string, unknown>[]}
 */
export function firstParts(task) {
  const first = messagesOf(task).find(({ role }) => role === 'user')
  const parts = first?.parts ?? [{ kind: 'text', text: task.text ?? 'Hello' }]
  return parts.map(({ metadata: _metadata, ...part }) => part)
}

/** @param {Record<string, unknown>[]} parts */
function messageOf(parts) {
  return { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts }
}

/**
 * @param {string} url
 * @param {Record<string, unknown>[]} parts
 */
function curl(url, parts) {
  const body = {
    jsonrpc: '2.0',
    id: '1',
    method: 'message/send',
    params: { message: messageOf(parts), configuration: { wait_ms: 10_000 } },
  }
  const json = JSON.stringify(body, null, 2).replaceAll("'", String.raw`'\''`)
  return `curl -sS ${shell(url)} \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  --data-binary '${json}'\n`
}

/** @param {string} text */
function shell(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/**
 * @param {string} url
 * @param {Record<string, unknown>[]} parts
 */
function typescript(url, parts) {
  return `import { AgentClient } from '@parley/client'

const client = new AgentClient({ url: ${JSON.stringify(url)}, token: process.env.TOKEN })
const { id } = await client.send(${sentBy(parts)})
const task = await client.wait(id)
console.log(task.status.state, JSON.stringify(task.artifacts, null, 2))
`
}

/** @param {Record<string, unknown>[]} parts */
function sentBy(parts) {
  const [part] = parts
  return parts.length === 1 && part?.['kind'] === 'text'
    ? JSON.stringify(part['text'])
    : `{ parts: ${JSON.stringify(parts, null, 2)} }`
}

/**
 * @param {string} url
 * @param {Record<string, unknown>[]} parts
 */
function python(url, parts) {
  return `import json, os, time, uuid
import httpx

client = httpx.Client(headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}, timeout=60)

def call(method, params):
    body = {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}
    answer = client.post(${JSON.stringify(url)}, json=body).json()
    if "error" in answer:
        raise SystemExit(answer["error"]["message"])
    return answer["result"]

parts = json.loads(${pythonText(JSON.stringify(parts, null, 2))})
message = {"role": "user", "kind": "message", "messageId": str(uuid.uuid4()), "parts": parts}
task = call("message/send", {"message": message})
while task["status"]["state"] in ("submitted", "working"):
    time.sleep(0.5)
    task = call("tasks/get", {"task_id": task["id"]})
print(task["status"]["state"], json.dumps(task["artifacts"], indent=2))
`
}

/**
 * A text as a literal of Python. A JSON string is one, except for lone surrogates, which both reject when they are sent.
 *
 * @param {string} text
 */
function pythonText(text) {
  return text.includes('\\') || text.includes('"""') ? JSON.stringify(text) : `"""${text}"""`
}
