import { replayCases } from './replay.cases.ts'

replayCases({ shuffles: 100, correctedMin: { 'the bundled agents': 1, '40 agents of a list': 1 } })
