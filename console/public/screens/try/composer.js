import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Text } from '../../components/text.js'
import { attachmentOf, fileFault, filesMaxBytes, sizeText } from './attachments.js'
import { partsOf } from './requests.js'

/** @typedef {import('./attachments.js').Attachment} Attachment */

/**
 * The field for the next message, with files.
 * @param {{ text: string, isBusy: boolean, answersTo: import('./conversation.js').Turn | undefined,
 *   send: (parts: import('./conversation.js').Part[]) => void }} props
 */
export function Composer({ text: given, isBusy, answersTo, send }) {
  const id = useId()
  const [text, setText] = useState(given)
  const [files, setFiles] = useState(/** @type {Attachment[]} */ ([]))
  const [fault, setFault] = useState('')
  const [isOver, setOver] = useState(false)
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null))
  useEffect(() => setText(given), [given])
  const attach = async (/** @type {FileList | null | undefined} */ list) => {
    const added = [...(list ?? [])]
    const wrong = fileFault(added, files)
    setFault(wrong ?? '')
    if (wrong !== undefined || added.length === 0) return
    const read = await Promise.all(added.map(attachmentOf)).catch(() => undefined)
    if (read === undefined) setFault('A file could not be read. Choose it again.')
    else setFiles((old) => [...old, ...read])
  }
  const submit = () => {
    const parts = partsOf(text, files)
    if (parts.length === 0 || isBusy) return
    send(parts)
    setText('')
    setFiles([])
    setFault('')
    field.current?.focus()
  }
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault()
    setOver(false)
    void attach(event.dataTransfer?.files)
  }
  const over = (/** @type {boolean} */ is) => (/** @type {DragEvent} */ event) => {
    event.preventDefault()
    setOver(is)
  }
  return html`<form class="composer" data-over=${isOver} onDrop=${drop} onDragOver=${over(true)} onDragLeave=${over(false)}
    onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault()
      submit()
    }}>
    ${files.length > 0 && html`<${Files} files=${files} remove=${(/** @type {number} */ at) => setFiles(files.filter((_, index) => index !== at))} />`}
    <label class="hidden-visually" for=${id}>${labelOf(answersTo)}</label>
    <textarea id=${id} ref=${field} rows="2" maxlength="1000000" placeholder=${labelOf(answersTo)} value=${text} aria-describedby=${`${id}-help`}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
        event.preventDefault()
        submit()
      }}></textarea>
    ${fault !== '' && html`<p class="bad small" role="alert">${fault}</p>`}
    <div class="row-apart">
      <span class="row"><${AttachButton} attach=${attach} /><span class="faint small" id=${`${id}-help`}>Enter sends, Shift+Enter starts a line. Drop files here, up to ${sizeText(filesMaxBytes)} in total.</span></span>
      <button type="submit" class="button primary" disabled=${isBusy}><${Icon} name="send" />${isBusy ? 'Working …' : answersTo === undefined ? 'Send' : 'Answer'}</button>
    </div>
  </form>`
}

/** @param {import('./conversation.js').Turn | undefined} paused */
const labelOf = (paused) => (paused === undefined ? 'Your message' : 'Your answer to the question above')

/** @param {{ attach: (list: FileList | null) => Promise<void> }} props */
function AttachButton({ attach }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null))
  return html`<button type="button" class="button" onClick=${() => input.current?.click()}><${Icon} name="file" />Attach</button>
    <input ref=${input} type="file" multiple hidden aria-label="Files to attach" onChange=${(
      /** @type {any} */ event,
    ) => {
      void attach(event.target.files)
      event.target.value = ''
    }} />`
}

/** @param {{ files: Attachment[], remove: (at: number) => void }} props */
function Files({ files, remove }) {
  return html`<ul class="plain-list row" aria-label="Attached files">
    ${files.map(
      (
        { name, size },
        index,
      ) => html`<li key=${`${index} ${name}`} class="file-chip"><${Icon} name="file" /><span class="truncate"><${Text} value=${name} max=${80} /></span>
        <span class="muted small nowrap">${sizeText(size)}</span>
        <button type="button" class="button plain tiny square" aria-label=${`Remove ${name}`} onClick=${() => remove(index)}><${Icon} name="close" /></button></li>`,
    )}
  </ul>`
}
