import type { Task } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { CurrentTask } from './run-turn.ts'

const task: Task = {
  id: '00000000-0000-4000-8000-000000000001',
  contextId: '00000000-0000-4000-8000-000000000002',
  status: { state: 'working', timestamp: '2026-01-01T00:00:00.000Z' },
  history: [],
  artifacts: [],
}

const delta = (text: string, last = false) => ({
  kind: 'artifact' as const,
  taskId: task.id,
  artifactId: 'a',
  parts: [{ kind: 'text' as const, text }],
  append: !last,
  last,
})

test('the deltas of a text are kept as one part', () => {
  const current = new CurrentTask({ task })
  const sent = ['Hel', 'lo', '!'].map((text) => current.apply(delta(text)))
  expect(sent).toEqual(['Hel', 'lo', '!'])
  expect(current.task.artifacts).toMatchObject([{ parts: [{ kind: 'text', text: 'Hello!' }] }])
  current.apply(delta('Hello?', true))
  expect(current.task.artifacts).toMatchObject([{ parts: [{ kind: 'text', text: 'Hello?' }] }])
})

test('artifacts that are too large end the stream with an error', () => {
  const current = new CurrentTask({ task })
  const bytes = 'x'.repeat(1024 * 1024)
  const receive = (count: number) => {
    for (let received = 0; received < count; received += 1)
      current.apply({ ...delta(''), artifactId: `a${received}`, parts: [{ kind: 'file', file: { bytes } }] })
  }
  receive(100)
  expect(current.task.artifacts).toHaveLength(100)
  expect(() => receive(300)).toThrow('The answer of the agent is too large')
})
