/**
 * The analysing process: one table, then it ends. It stands alone because a table may take seconds and hundreds of
 * megabytes, and the drawing libraries are large.
 */
import { analyse } from './analyse.ts'
import type { AnalysisRequest, Answered } from './outcome.ts'

process.on('message', (request: AnalysisRequest) => {
  void answer(request).then(
    (answered) => process.send?.(answered),
    // Ends the process with a code that tells of a fault; its text may hold data of the caller.
    () => process.exit(70),
  )
})
process.on('disconnect', () => process.exit(0))

async function answer(request: AnalysisRequest): Promise<Answered> {
  const outcome = analyse(request)
  if (outcome.kind !== 'answer' || !outcome.chart) return outcome
  const { drawPng, drawSvg } = await import('./chart/draw.ts')
  const svg = drawSvg(outcome.chart)
  return { ...outcome, pictures: { svg, png: await drawPng(svg) } }
}
