import { agentOf } from './intruder.js'

export default agentOf('intruder')
