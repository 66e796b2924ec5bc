/**
 * `npm run tck -- <checkout of a2a-tck>`: runs the official test kit of A2A, its branches 1.0-dev and 0.3.x, against the
 * agent of `tools/testing/tck-agent` and prints the results. `--write` also writes them to docs/conformance.md. Needs
 * Python 3.12 or newer with venv and pip, and tar. The exit code is 1 if a result is worse than documented.
 */
import { parseArgs } from 'node:util'
import { writeConformance } from './tck/conformance.ts'
import { branches, runBranch } from './tck/kit.ts'
import { printResults, unexpectedFailures } from './tck/results.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, branch: { type: 'string', multiple: true } },
})
const [checkout] = positionals
const selected = branches.filter(({ name }) => values.branch?.includes(name) ?? true)

if (checkout === undefined || selected.length === 0) {
  console.error(
    'Usage: npm run tck -- <folder of a checkout of a2a-tck> [--branch 1.0-dev] [--branch 0.3.x] [--write]',
  )
  process.exitCode = 2
} else {
  const runs = []
  for (const branch of selected) {
    const run = await runBranch(branch, checkout)
    printResults(run)
    runs.push(run)
  }
  if (values.write) await writeConformance(runs)
  if (runs.some((run) => unexpectedFailures(run).length > 0)) process.exitCode = 1
}
