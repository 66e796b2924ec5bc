/**
 * Installs PyPI `a2a-sdk` in both versions into the cache folder, for the suites that run its clients and servers,
 * `(needs a2a-sdk)`. `npm test` and `npm run interop` do the same. Needs Python 3.12 or newer with venv and pip.
 */
import { a2aSdk } from './interop/python.ts'
import { installPython } from './testing/python.ts'

for (const environment of Object.values(a2aSdk)) {
  const reason = installPython(environment)
  if (reason !== undefined)
    console.log(`${environment.name} is not installed: ${reason}. Suites that need it are skipped.`)
}
