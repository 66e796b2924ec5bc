import { Command } from 'commander'

/** A command whose action returns the exit code. Undefined counts as 0. */
export class CliCommand extends Command {
  exitCode = 0
  readonly #optionOf: Record<string, string> = {}

  run(action: (...args: never[]) => Promise<number | undefined | void>): this {
    return this.action(async (...args: unknown[]) => {
      this.exitCode = (await action(...(args as never[]))) ?? 0
    })
  }

  /** Declares which option or argument sets a member of a request, for errors about members without an equal option. */
  members(optionOf: Record<string, string>): this {
    Object.assign(this.#optionOf, optionOf)
    return this
  }

  /** Returns the option or argument that sets a member of a request (`limits.perMinute`), or else the member. */
  optionOf(path: string): string {
    const name = path.split('.').findLast((part) => !/^\d+$/.test(part)) ?? path
    const option = this.options.find((one) => one.attributeName() === name)
    return this.#optionOf[name] ?? option?.long ?? path
  }
}
