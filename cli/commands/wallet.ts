import { clientSettings } from '../server/environment.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { openWallet } from '../server/wallet.ts'
import { balancesOf } from '../server/wallet-balance.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { type Io, print, printJson } from '../terminal/io.ts'

interface WalletOptions extends ServerOptions {
  json?: true
}

export default function walletCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('wallet'))
    .option('--json', 'print file, address and balances as JSON')
    .addHelpText(
      'after',
      `
Creates the wallet if needed: a key in DATA_DIR/wallet.key, readable by its owner only. It signs
payments on test networks only. Each agent that accepts test money keeps its own balance for it.`,
    )
    .run((options: WalletOptions) => showWallet(io, options))
}

async function showWallet(io: Io, options: WalletOptions): Promise<void> {
  const { file, address } = await openWallet(clientSettings(io).dataDir)
  const server = await connect(io, options)
  const balances = await balancesOf(server, address)
  if (options.json) return printJson(io, { address, file, sandbox: true, balances: balances ?? [] })
  print(io, `${address}\n`)
  print(io, `  key      ${file}\n`)
  if (balances === undefined) return print(io, '  balance  no gateway answers (npx parley up)\n')
  if (balances.length === 0) return print(io, '  balance  no agent here takes test money\n')
  for (const { agent, amount, asset, network } of balances)
    print(io, `  balance  ${amount} ${asset} (${network}, test money) at ${agent}\n`)
}
