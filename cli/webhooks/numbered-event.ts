import type { WireArtifactUpdate, WireStatusUpdate } from '@parley/client/internal/wire'
import { oneLine } from '../terminal/printable.ts'
import { textOf } from '../terminal/task-view.ts'

/** What a webhook brings: every such event has an id and a number. */
export type NumberedEvent = (WireStatusUpdate | WireArtifactUpdate) & { event_id: string; sequence: number }

/** Undefined for what is not an event of a task; only what is used here is looked at. */
export function numberedEvent(value: unknown): NumberedEvent | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { event_id: id, sequence, task_id: task, kind, status, artifact } = value as Record<string, unknown>
  if (typeof id !== 'string' || id === '' || id.length > 200) return undefined
  if (typeof task !== 'string' || task === '' || task.length > 200) return undefined
  if (!Number.isSafeInteger(sequence) || (sequence as number) < 1) return undefined
  const isStatus = kind === 'status-update' && typeof (status as { state?: unknown })?.state === 'string'
  const isArtifact = kind === 'artifact-update' && Array.isArray((artifact as { parts?: unknown })?.parts)
  return isStatus || isArtifact ? (value as NumberedEvent) : undefined
}

/** One line for people; what others wrote into it is shortened and harmless. */
export function eventLine(event: NumberedEvent): string {
  return `${event.task_id.slice(0, 8)} #${event.sequence} ${oneLine(saidBy(event), 160)}`
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
