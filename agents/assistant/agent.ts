import { assistantOf } from './assistant.ts'
import { readSettings } from './settings.ts'

export default assistantOf(readSettings(process.env))
