import { defineAgent, file, type HandlerContext, type Output } from '@parley/agent'
import { fileName } from './file-name.ts'
import { orderOf } from './job.ts'
import { press } from './press.ts'
import type { Typeset } from './typeset.ts'

/** The skills are in `skills/`. */
export default defineAgent({
  name: 'document-maker',
  description:
    'Makes well-set PDF documents: turns Markdown or plain text into a PDF file with headings, tables, lists, code, images and page numbers, and makes reports of the results of other tasks.',
  version: '1.0.0',
  concurrency: 2,
  deadlineMs: 120_000,
  async *handle(context) {
    const order = orderOf(context)
    if (order.kind === 'refused') return context.decline(order.reason)
    if (order.kind === 'nothing')
      return context.ask('Which text shall I make a PDF of? Send Markdown or a file.')
    const answer = await press(order, context.signal)
    if ('declined' in answer) return context.decline(answer.declined)
    if (takesText(context)) yield said(answer.made)
    yield file(fileName(answer.made.name), 'application/pdf', answer.made.pdf)
    return undefined
  },
})

const takesText = ({ acceptedOutputModes }: HandlerContext): boolean =>
  acceptedOutputModes.length === 0 ||
  acceptedOutputModes.some((mode) => /^(?:text|\*)(?:$|\/(?:plain|\*))/i.test(mode))

function said({ name, pages, missing }: Typeset): Output {
  const made = `${fileName(name)}: ${pages} ${pages === 1 ? 'page' : 'pages'}.`
  return missing.length === 0
    ? made
    : `${made} No font has these characters, so they are shown as boxes: ${missing.join(' ')}`
}
