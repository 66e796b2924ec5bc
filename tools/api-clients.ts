/**
 * Installs clients of MCP and of the OpenAI API into the cache folder, for the suites that run them: `(needs mcp-inspector)`,
 * `(needs openai-python)` and `(needs mcp-python)`. `npm test` and `npm run interop` do the same.
 */
import { inspector } from './clients/mcp-inspector.ts'
import { mcpPython, openaiPython } from './clients/python-clients.ts'
import { installNodePackage } from './testing/node-packages.ts'
import { installPython } from './testing/python.ts'

const reasons = {
  [inspector.name]: installNodePackage(inspector),
  'openai of PyPI': installPython(openaiPython),
  'mcp of PyPI': installPython(mcpPython),
}
for (const [name, reason] of Object.entries(reasons))
  if (reason !== undefined)
    console.log(`${name} is not installed: ${reason}. Suites that need it are skipped.`)
