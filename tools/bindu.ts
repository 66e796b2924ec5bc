/**
 * `npm run bindu`: installs the reference implementation (PyPI package `bindu`) into the cache folder, for the test
 * suites that run its agent, `(needs bindu)`. `npm test` does the same. Needs Python 3.12 or newer with venv and pip.
 */
import { bindu } from './testing/bindu.ts'
import { installPython } from './testing/python.ts'

const reason = installPython(bindu)
if (reason !== undefined)
  console.log(`The reference implementation is not installed: ${reason}. Suites that need it are skipped.`)
