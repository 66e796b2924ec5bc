import { useEffect, useRef, useState } from 'preact/hooks'
import { Badge } from '../../components/badge.js'
import { CodeBlock, JsonView } from '../../components/code.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { EmptyState, Skeleton } from '../../components/states.js'
import { plainText, Text } from '../../components/text.js'

/**
 * @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail
 * @typedef {{ kind: string, text?: string, data?: unknown, file?: { name?: string, mime_type?: string, mimeType?: string,
 *   bytes?: string, uri?: string }, metadata?: Record<string, unknown> }} Part
 * @typedef {{ artifact_id?: string, name?: string, description?: string, parts?: Part[] }} Artifact
 */

/**
 * The artifacts of a task, each shown by its kind.
 *
 * @param {{ task: TaskDetail }} props
 */
export function Artifacts({ task }) {
  const artifacts = artifactsOf(task)
  if (task.task === null)
    return html`<${EmptyState} title="The results of this task are not shown" icon="lock">
      Texts and files of other owners are hidden in this deployment. The setting <code>OPERATOR_READS_TEXTS</code> shows them to operators.
    <//>`
  if (artifacts.length === 0)
    return html`<${EmptyState} title="No results yet" icon="file">A task has its results when it is completed.<//>`
  return html`<div class="stack">
    ${artifacts.map((artifact, index) => html`<${ArtifactView} key=${artifact.artifact_id ?? index} artifact=${artifact} task=${task} />`)}
  </div>`
}

/**
 * @param {TaskDetail} task
 * @returns {Artifact[]}
 */
export function artifactsOf(task) {
  const artifacts = task.task?.['artifacts']
  return Array.isArray(artifacts) ? artifacts.filter((one) => typeof one === 'object' && one !== null) : []
}

/** @param {{ artifact: Artifact, task: TaskDetail }} props */
function ArtifactView({ artifact, task }) {
  const parts = artifact.parts ?? []
  return html`<section class="artifact" aria-label=${`Artifact ${plainText(artifact.name ?? '')}`}>
    <header class="row-apart">
      <h3><${Text} value=${artifact.name ?? 'result'} max=${160} /></h3>
      <${Signature} task=${task} artifact=${artifact} />
    </header>
    ${artifact.description && html`<p class="muted"><${Text} value=${artifact.description} max=${500} /></p>`}
    ${parts.slice(0, 50).map((part, index) => html`<${PartView} key=${index} part=${part} name=${artifact.name} address=${addressOf(task, artifact, index)} />`)}
    ${parts.length > 50 && html`<p class="faint">${parts.length - 50} more parts are in the tab JSON.</p>`}
  </section>`
}

/**
 * The check of the signatures of the artifact's parts by the gateway.
 *
 * @param {{ task: TaskDetail, artifact: Artifact }} props
 */
function Signature({ task, artifact }) {
  const verdicts = (task.signatures ?? [])
    .filter((one) => one.artifact_id === artifact.artifact_id)
    .map(({ verdict }) => verdict)
  if (verdicts.length === 0) {
    const isSigned = artifact.parts?.some(({ metadata }) => metadata?.['did.message.signature'] !== undefined)
    return isSigned ? html`<${Badge} icon="shield">signed, not checked<//>` : html`<${Badge}>not signed<//>`
  }
  if (verdicts.every((verdict) => verdict === 'verified'))
    return html`<${Badge} tone="good" icon="shield">signed by <${Text} value=${task.agent} max=${40} />, verified<//>`
  if (verdicts.every((verdict) => verdict === 'unsigned')) return html`<${Badge}>not signed<//>`
  if (verdicts.every((verdict) => /^(verified|no_keys|too_large)$/.test(verdict)))
    return html`<${Badge} tone="warn" icon="shield">${signatureProblems[verdicts.find((verdict) => verdict !== 'verified') ?? '']}<//>`
  return html`<${Badge} tone="bad" icon="alert">${signatureProblems[verdicts.find((verdict) => verdict in signatureProblems) ?? ''] ?? 'not all parts are signed'}<//>`
}

const signatureProblems = /** @type {Record<string, string>} */ ({
  crypto_mismatch: 'the signature does not match',
  another_key: 'signed with a key that is not the agent’s',
  malformed_input: 'the signature is unreadable',
  no_keys: 'signed, but the agent has not proven a key',
  too_large: 'signed, too large to check here: npx parley verify',
})

/**
 * The address of a part for the sandboxed frame.
 *
 * @param {TaskDetail} task
 * @param {Artifact} artifact
 * @param {number} index
 */
function addressOf(task, artifact, index) {
  const steps = [task.agent, task.task_id, artifact.artifact_id ?? '', String(index)]
  return `/console/artifacts/${steps.map(encodeURIComponent).join('/')}`
}

/** @param {{ part: Part, name?: string, address?: string }} props */
export function PartView({ part, name = '', address }) {
  if (part.kind === 'text' && typeof part.text === 'string')
    return html`<${TextPart} text=${part.text} name=${name} />`
  if (part.kind === 'data') return html`<${JsonView} value=${part.data} />`
  if (part.kind === 'file' && part.file) return html`<${FilePart} file=${part.file} address=${address} />`
  return html`<${JsonView} value=${part} open=${1} />`
}

const markdown = /^#{1,6} \S|^[ \t]{0,20}[-*] \S|\*\*\S|^\|.+\|$|^```/m
/** The beginning of a text decides, so that a long one does not stop the page. */
const examinedChars = 20_000

/**
 * @param {string} text
 * @param {string} name
 */
export function looksLikeMarkdown(text, name) {
  return /\.(md|markdown)$/i.test(name) || markdown.test(text.slice(0, examinedChars))
}

/** @param {{ text: string, name: string }} props */
function TextPart({ text, name }) {
  const [isSource, setSource] = useState(false)
  const isMarkdown = looksLikeMarkdown(text, name)
  if (!isMarkdown) return html`<div class="plain-text"><${Text} value=${text} max=${200_000} /></div>`
  return html`<div class="stack-2">
    ${isSource ? html`<${CodeBlock} text=${text} wrap=${true} />` : html`<${LazyMarkdown} text=${text} />`}
    <div><button type="button" class="button tiny plain" aria-pressed=${isSource ? 'true' : 'false'} onClick=${() => setSource(!isSource)}>Source</button></div>
  </div>`
}

/**
 * Loads the reader of Markdown when the first text needs it.
 *
 * @param {{ text: string }} props
 */
function LazyMarkdown({ text }) {
  const [component, setComponent] = useState(/** @type {any} */ (undefined))
  useEffect(() => {
    import('../../components/markdown.js')
      .then(({ Markdown }) => setComponent(() => Markdown))
      .catch(() => setComponent(() => CodeBlock))
  }, [])
  return component === undefined
    ? html`<${Skeleton} lines=${3} />`
    : html`<${component} text=${text} wrap=${true} />`
}

/** Images that browsers decode without running anything. */
const images = /^image\/(png|jpeg|gif|webp|avif)$/
const shownBytesMax = 8 * 1024 * 1024

/** @param {{ file: NonNullable<Part['file']>, address?: string }} props */
function FilePart({ file, address }) {
  const type = (file.mime_type ?? file.mimeType ?? 'application/octet-stream').toLowerCase()
  const bytes = file.bytes === undefined ? undefined : Math.floor((file.bytes.length * 3) / 4)
  const isShown = bytes !== undefined && bytes <= shownBytesMax
  return html`<div class="file stack-2">
    <div class="row">
      <${Icon} name="file" /><strong class="break"><${Text} value=${file.name ?? 'file'} max=${160} /></strong>
      <span class="muted small"><${Text} value=${type} max=${80} />${bytes !== undefined && ` · ${sizeText(bytes)}`}</span>
      <span class="row end"><${FileActions} file=${file} /></span>
    </div>
    ${isShown && images.test(type) && html`<img class="artifact-image" src=${`data:${type};base64,${file.bytes}`} alt=${plainText(file.name ?? 'Image')} loading="lazy" />`}
    ${isShown && address !== undefined && /^(text\/html|image\/svg\+xml)\b/.test(type) && html`<${Framed} address=${address} name=${file.name ?? 'file'} />`}
    ${isShown && type === 'application/pdf' && html`<${PdfFile} file=${file} />`}
    ${isShown && /^(text\/(plain|csv|markdown)|application\/json)\b/.test(type) && html`<${TextFile} file=${file} type=${type} />`}
  </div>`
}

/**
 * A document that may contain scripts, in a frame of another origin without scripts. It is loaded when the reader wants it.
 *
 * @param {{ address: string, name: string }} props
 */
function Framed({ address, name }) {
  const [isOpen, setOpen] = useState(false)
  if (!isOpen)
    return html`<div><button type="button" class="button" onClick=${() => setOpen(true)}>Show it in a sandboxed frame</button></div>`
  return html`<iframe class="artifact-frame" sandbox="" src=${address} title=${plainText(name)} referrerpolicy="no-referrer"></iframe>`
}

/**
 * The pages of a PDF document, drawn in a sandboxed frame. The reader of PDF is loaded when the reader opens a document.
 *
 * @param {{ file: NonNullable<Part['file']> }} props
 */
function PdfFile({ file }) {
  const [isOpen, setOpen] = useState(false)
  const frame = useRef(/** @type {HTMLIFrameElement | null} */ (null))
  useEffect(() => {
    const send = (/** @type {MessageEvent} */ { source, data }) => {
      const viewer = frame.current?.contentWindow
      if (!viewer || source !== viewer || data !== 'ready') return
      const content = bytesOf(file.bytes ?? '')?.buffer ?? new ArrayBuffer(0)
      // The frame has no origin that could be named, and sandboxing keeps others from loading into it.
      viewer.postMessage({ content, theme: document.documentElement.dataset['theme'] }, '*', [content])
    }
    addEventListener('message', send)
    return () => removeEventListener('message', send)
  }, [file])
  if (!isOpen)
    return html`<div><button type="button" class="button" onClick=${() => setOpen(true)}>Show the pages</button></div>`
  return html`<iframe ref=${frame} class="artifact-frame pdf" sandbox="allow-scripts" src="/console/pdf-frame" title=${plainText(file.name ?? 'PDF document')} referrerpolicy="no-referrer"></iframe>`
}

/** @param {{ file: NonNullable<Part['file']>, type: string }} props */
function TextFile({ file, type }) {
  const text = decoded(file.bytes ?? '')
  if (text === undefined) return null
  if (type.startsWith('application/json')) {
    try {
      return html`<${JsonView} value=${JSON.parse(text)} />`
    } catch {
      return html`<${CodeBlock} text=${text} />`
    }
  }
  return type.startsWith('text/markdown')
    ? html`<${TextPart} text=${text} name="x.md" />`
    : html`<${CodeBlock} text=${text} />`
}

/** @param {{ file: NonNullable<Part['file']> }} props */
function FileActions({ file }) {
  const save = () => {
    const link = document.createElement('a')
    const content = bytesOf(file.bytes ?? '') ?? new Uint8Array()
    // A download never opens in the origin of the console, whatever its type.
    link.href = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }))
    link.download = (file.name ?? 'file').replace(/[^\p{L}\p{N}._ -]/gu, '_')
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }
  return html`
    ${file.bytes !== undefined && html`<button type="button" class="button tiny" onClick=${save}>Save</button>`}
    ${file.uri !== undefined && /^https?:/.test(file.uri) && html`<a href=${file.uri} target="_blank" rel="noopener noreferrer nofollow">Open its address</a>`}
  `
}

/** @param {string} base64 */
function decoded(base64) {
  const bytes = bytesOf(base64.slice(0, 400_000))
  return bytes && new TextDecoder().decode(bytes)
}

/**
 * Undefined if the text is not Base64.
 *
 * @param {string} base64
 */
function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

/** @param {number} bytes */
function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}
