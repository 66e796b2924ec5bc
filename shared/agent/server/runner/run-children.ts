import type { ChildTask } from '@parley/engine/store/store'
import type { TaskDraft } from '@parley/engine/tasks/engine'
import type { RunCalls } from '../../author/delegation.ts'

/**
 * Stores the calls of one run with its task. They are changes of the same draft as the end of the run, so they are
 * committed one after another.
 */
export class RunChildren {
  readonly #draft: TaskDraft
  readonly #commit: () => Promise<boolean>
  readonly #opened = Promise.withResolvers<boolean>()
  #calls: RunCalls | undefined
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false

  /** @param commit commits the draft; false if another process has changed the task */
  constructor(draft: TaskDraft, commit: () => Promise<boolean>) {
    this.#draft = draft
    this.#commit = commit
  }

  /** Called after the commit with which the run begins. @param isOurs whether the commit succeeded */
  open(isOurs: boolean): void {
    this.#opened.resolve(isOurs)
  }

  /** At the end of the run, the calls that have ended since the last `save` are stored as well. */
  follow(calls: RunCalls): void {
    this.#calls = calls
  }

  /** Waits for the first commit of the run. @throws Error if the run is over or the task was changed elsewhere */
  async save(children: ChildTask[]): Promise<void> {
    const isOurs = await this.#opened.promise
    const saving = this.#saveAfter(this.#last, children, isOurs)
    this.#last = saving.catch(() => {})
    await saving
  }

  async #saveAfter(last: Promise<unknown>, children: ChildTask[], isOurs: boolean): Promise<void> {
    await last
    if (!isOurs || this.#isClosed) throw over()
    this.#draft.apply({ kind: 'children', children })
    if (!(await this.#commit())) throw over()
  }

  /** Waits for the save in progress and rejects later ones. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#opened.resolve(false)
    if (this.#calls === undefined) return
    await this.#last
    const { children } = this.#calls
    const { record } = this.#draft
    if (record.status.state === 'working' && children.length > 0 && children !== record.children)
      this.#draft.apply({ kind: 'children', children })
  }
}

const over = () => new Error('The run of this task is over, so it cannot call other agents.')
