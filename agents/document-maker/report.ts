import type { HandlerContext } from '@parley/agent'
import type { Attachment } from './document.ts'

type Reference = HandlerContext['references'][number]

/** Maximum size of a data object that is rendered. Larger objects are only mentioned. */
const maxDataCharacters = 20_000

/** Renders the results of tasks as Markdown, with data as code and images as uniquely named attachments. */
export function reportOf(references: Reference[]): { markdown: string; attachments: Attachment[] } {
  const attachments: Attachment[] = []
  const sections = references.map((reference, place) => {
    const images = reference.files.filter(({ mimeType }) => /^image\/(?:png|jpe?g)\b/i.test(mimeType ?? ''))
    const placed = images.map((file, number) => {
      const name = `task-${place + 1}-image-${number + 1}`
      attachments.push({ name, bytes: file.bytes })
      return `![${captionOf(file.name)}](${name})`
    })
    const texts = reference.files.filter(({ mimeType }) =>
      /^text\/(?:plain|markdown)\b/i.test(mimeType ?? ''),
    )
    const parts = [reference.text, ...texts.map((file) => file.text), ...dataOf(reference), ...placed]
    return parts.filter((part) => part.trim() !== '').join('\n\n')
  })
  const filled = sections.filter((section) => section !== '')
  return { markdown: filled.join('\n\n---\n\n'), attachments }
}

function dataOf({ artifacts }: Reference): string[] {
  const found = artifacts.flatMap(({ parts }) => parts).filter((part) => part.kind === 'data')
  return found.map((part) => {
    const json = JSON.stringify(part.data, null, 2)
    return json.length > maxDataCharacters ? '*(Data too long to show.)*' : fenced(json)
  })
}

/** Returns a code fence longer than any in the text. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}json\n${text}\n${fence}`
}

const captionOf = (name: string | undefined): string =>
  (name ?? '')
    .replace(/\.[A-Za-z0-9]{1,5}$/, '')
    .replace(/[^\p{L}\p{N} .,_-]/gu, ' ')
    .replaceAll('_', ' ')
    .trim()
