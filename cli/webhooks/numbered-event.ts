import { type NumberedEvent, positionOf } from '@parley/wire/codecs/parley/events'
import { oneLine } from '../terminal/printable.ts'
import { textOf } from '../terminal/task-view.ts'

/** Formats an event as one line for people, shortened and without control sequences. */
export function eventLine(event: NumberedEvent): string {
  return `${positionOf(event).taskId.slice(0, 8)} #${event.sequence} ${oneLine(saidBy(event), 160)}`
}

function saidBy(event: NumberedEvent): string {
  if (event.kind === 'status-update') {
    const text = textOf(event.status.message?.parts ?? [], ' ')
    return `${event.status.state}${event.final ? ' (final)' : ''}${text === '' ? '' : `: ${text}`}`
  }
  const { name, parts } = event.artifact
  const files = parts.flatMap((part) => (part.kind === 'file' ? [part.file.name ?? 'file'] : []))
  const text = textOf(parts, ' ')
  const kinds = [text, ...files, ...parts.filter(({ kind }) => kind === 'data').map(() => 'data')]
  return `artifact ${name}: ${kinds.filter((one) => one !== '').join(', ')}`
}
