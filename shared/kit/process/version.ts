import { readFileSync } from 'node:fs'

/** Of the package, with build information where the build gives it (spec/operations.md#health). */
export const version: string = readVersion()

function readVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
    build?: string
  }
  return manifest.build === undefined ? `${manifest.version}+source` : `${manifest.version}+${manifest.build}`
}
