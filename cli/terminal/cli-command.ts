import { Command } from 'commander'

/** A command whose action returns the exit code. Undefined counts as 0. */
export class CliCommand extends Command {
  exitCode = 0

  run(action: (...args: never[]) => Promise<number | undefined | void>): this {
    return this.action(async (...args: unknown[]) => {
      this.exitCode = (await action(...(args as never[]))) ?? 0
    })
  }
}
