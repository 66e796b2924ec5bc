import { readFileSync } from 'node:fs'

/** Version of the package, with build information if available (spec/operations.md#health). */
export const version: string = readVersion()

function readVersion(): string {
  const manifest: { version: string; build?: string } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  )
  return manifest.build === undefined ? `${manifest.version}+source` : `${manifest.version}+${manifest.build}`
}
