/**
 * Which tasks may have a push config, so that a commit of the others costs nothing. With more ids than it may hold, or where
 * other processes register configs too, every task may have one.
 */
export class OpenTasks {
  readonly #ids = new Set<string>()
  readonly #max: number
  #everyTask: boolean

  constructor(options: { max: number; everyTask: boolean }) {
    this.#max = options.max
    this.#everyTask = options.everyTask
  }

  add(taskId: string): void {
    if (this.#everyTask || this.#ids.has(taskId)) return
    if (this.#ids.size < this.#max) this.#ids.add(taskId)
    else this.#everyTask = true
  }

  delete(taskId: string): void {
    this.#ids.delete(taskId)
  }

  has(taskId: string): boolean {
    return this.#everyTask || this.#ids.has(taskId)
  }
}
