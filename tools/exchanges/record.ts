import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { areas } from './areas.ts'
import { type Difference, differences } from './differences.ts'
import { Recorder } from './recorder.ts'
import { startWorld } from './world.ts'

export const recordedDir = path.join(import.meta.dirname, 'recorded')

/** Runs Parley from a checkout, sends every request of the record and returns one text per area. */
export async function record(checkout: string, only?: string): Promise<Map<string, string>> {
  await using world = await startWorld(checkout)
  const files = new Map<string, string>()
  for (const [name, run] of Object.entries(areas)) {
    if (only !== undefined && only !== name) continue
    const recorder = new Recorder(world.literals)
    await run(recorder, world)
    files.set(name, recorder.exchanges.map(({ title, text }) => `=== ${title}\n${text}`).join('\n'))
  }
  return files
}

/** The differences between the record in the repository and this one. */
export async function compare(files: ReadonlyMap<string, string>, dir = recordedDir): Promise<Difference[]> {
  const all: Difference[] = []
  for (const [area, text] of files) {
    const recorded = await readFile(path.join(dir, `${area}.txt`), 'utf8').catch(() => '')
    all.push(...differences(area, recorded, text))
  }
  return all
}

export const countOf = (files: ReadonlyMap<string, string>) =>
  [...files.values()].reduce((sum, text) => sum + (text.match(/^=== /gm)?.length ?? 0), 0)

async function write(files: ReadonlyMap<string, string>, dir: string): Promise<void> {
  await mkdir(dir, { recursive: true })
  for (const [area, text] of files) await writeFile(path.join(dir, `${area}.txt`), text)
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      write: { type: 'boolean', default: false },
      checkout: { type: 'string', default: path.resolve(import.meta.dirname, '../..') },
      recorded: { type: 'string', default: recordedDir },
      area: { type: 'string' },
    },
  })
  const began = performance.now()
  const files = await record(path.resolve(values.checkout), values.area)
  const took = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`${countOf(files)} exchanges in ${files.size} areas, ${took} s`)
  if (values.write) {
    await write(files, values.recorded)
    return 0
  }
  const found = await compare(files, values.recorded)
  for (const { text } of found) console.log(text)
  console.log(found.length === 0 ? 'Every byte is as recorded.' : `${found.length} exchanges differ.`)
  return found.length === 0 ? 0 : 1
}

if (process.argv[1] === import.meta.filename) process.exitCode = await main()
