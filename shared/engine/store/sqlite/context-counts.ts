import type { LoggedTask } from './logged-task.ts'

/** The contexts of a number of tasks. */
export class ContextCounts {
  readonly #contexts = new Map<string, { owner: string; tasks: number }>()

  ownerOf(id: string): string | undefined {
    return this.#contexts.get(id)?.owner
  }

  add({ context_id, owner }: LoggedTask): void {
    const context = this.#contexts.get(context_id)
    if (context === undefined) this.#contexts.set(context_id, { owner, tasks: 1 })
    else context.tasks += 1
  }

  remove({ context_id }: LoggedTask): void {
    const context = this.#contexts.get(context_id)
    if (context === undefined) return
    context.tasks -= 1
    if (context.tasks === 0) this.#contexts.delete(context_id)
  }
}
