/**
 * Child process that analyses one table and exits. A table may need seconds and hundreds of megabytes, and the drawing
 * libraries are large.
 */
import { analyse } from './analyse.ts'
import type { AnalysisRequest, Answered } from './outcome.ts'

process.on('message', (request: AnalysisRequest) => {
  void answer(request).then(
    (answered) => process.send?.(answered),
    // Exits without an error message, which could contain the caller's data.
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
