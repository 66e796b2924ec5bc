/** An agent of `@a2a-js/sdk` 1.3, as an A2A server of another vendor. */

import { jsV1App } from '../../interop/servers/js-v1.ts'
import { freePort } from '../../testing/port.ts'

const port = await freePort()
const address = `http://127.0.0.1:${port}`
jsV1App(address).listen(port, '127.0.0.1', () => console.error(JSON.stringify({ address })))
process.on('SIGTERM', () => process.exit(0))
