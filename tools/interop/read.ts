import { z } from 'zod'

const part = z.looseObject({ text: z.string().optional() })
const parts = z.array(part).default([])
const status = z.looseObject({ state: z.string(), message: z.looseObject({ parts }).optional() })
const artifact = z.looseObject({ parts })
const task = z.looseObject({
  id: z.string(),
  contextId: z.string(),
  status,
  artifacts: z.array(artifact).default([]),
})
const update = z.looseObject({ status: status.optional(), artifact: artifact.optional() })
const frame = z.looseObject({
  // 1.0
  task: task.optional(),
  statusUpdate: update.optional(),
  artifactUpdate: update.optional(),
  message: z.looseObject({ parts }).optional(),
  // 0.3
  kind: z.string().optional(),
})

export interface TaskView {
  id: string
  contextId: string
  /** As in 0.3: `input-required`. */
  state: string
  /** The text of the artifacts and the status message. */
  text: string
}

export interface FrameView {
  kind: string
  task?: TaskView
  state?: string
}

const stateOf = ({ state }: z.infer<typeof status>) =>
  state
    .replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replaceAll('_', '-')

/** Reads the JSON of a task of either dialect. @throws ZodError */
export function taskIn(json: unknown): TaskView {
  const read = task.parse(json)
  const all = [...read.artifacts.flatMap((one) => one.parts), ...(read.status.message?.parts ?? [])]
  const text = all.map((one) => one.text ?? '').join('\n')
  return { id: read.id, contextId: read.contextId, state: stateOf(read.status), text }
}

const updateOf = (kind: string, { status: found }: z.infer<typeof update>): FrameView => ({
  kind,
  ...(found !== undefined && { state: stateOf(found) }),
})

/** Reads a frame of a stream of either dialect. @throws ZodError */
function frameIn(json: unknown): FrameView {
  const read = frame.parse(json)
  if (read.kind === 'task' || read.task !== undefined) {
    const found = taskIn(read.task ?? json)
    return { kind: 'task', task: found, state: found.state }
  }
  if (read.statusUpdate !== undefined) return updateOf('status-update', read.statusUpdate)
  if (read.artifactUpdate !== undefined) return updateOf('artifact-update', read.artifactUpdate)
  return updateOf(read.kind ?? 'message', update.parse(json))
}

export function framesIn(json: unknown): FrameView[] {
  return z.array(z.unknown()).parse(json).map(frameIn)
}
