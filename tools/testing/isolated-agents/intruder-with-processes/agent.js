import { agentOf } from '../intruder/intruder.js'

export default agentOf('intruder-with-processes')
