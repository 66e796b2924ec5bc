/**
 * `node tools/schemathesis.ts [requests per operation]`: starts a gateway and two agents, and sends requests to every operation
 * of their OpenAPI documents with PyPI `schemathesis`. Without an argument, it installs the package into the cache folder only,
 * as `npm test` and `npm run interop` do. Needs Python 3.12 or newer with venv and pip.
 */
import { fuzz, installSchemathesis } from './schemathesis/run.ts'

const reason = installSchemathesis()
const [examples] = process.argv.slice(2).map(Number)
if (reason !== undefined) console.log(reason)
else if (examples !== undefined && !(await fuzz(examples))) process.exitCode = 1
