import { createRequire } from 'node:module'
import Pdf from 'pdfkit'
import { drawChart } from './chart.ts'
import { findingsOf } from './findings.ts'
import type { Forecast } from './forecast.ts'
import { numberText } from './number-text.ts'
import { labelOf } from './series.ts'

const { resolve } = createRequire(import.meta.url)
const faces = {
  regular: resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'),
  bold: resolve('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'),
}
const margin = 56
const rowHeight = 17

/** PDF report: findings and chart on the first page, then all periods, then the method. */
export async function reportOf(forecast: Forecast): Promise<Buffer> {
  const title = `Forecast: ${forecast.series.name.slice(0, 80)}`
  const pdf = new Pdf({ size: 'A4', margin, lang: 'en', info: { Title: title }, displayTitle: true })
  const chunks: Buffer[] = []
  const done = new Promise<Buffer>((made, failed) => {
    pdf.on('data', (chunk: Buffer) => chunks.push(chunk))
    pdf.on('end', () => made(Buffer.concat(chunks)))
    pdf.on('error', failed)
  })
  pdf.registerFont('regular', faces.regular).registerFont('bold', faces.bold)
  firstPage(pdf, title, forecast)
  table(
    pdf,
    ['Period', 'Expected', 'Low (80%)', 'High (80%)'],
    forecast.steps.map(({ period, value, low, high }) => [
      period,
      numberText(value),
      numberText(low),
      numberText(high),
    ]),
  )
  method(pdf, forecast)
  pdf.end()
  return done
}

function firstPage(pdf: PDFKit.PDFDocument, title: string, forecast: Forecast): void {
  const { series } = forecast
  const width = pdf.page.width - 2 * margin
  const from = labelOf(series.times[0] ?? 0, series.unit)
  const until = labelOf(series.times.at(-1) ?? 0, series.unit)
  pdf.font('bold').fontSize(20).fillColor('#111111').text(title)
  pdf.font('regular').fontSize(10).fillColor('#444444')
  pdf.text(`${series.values.length} values, one a ${series.unit}, ${from} to ${until}`).moveDown(1)
  pdf.fontSize(11).fillColor('#111111')
  for (const finding of findingsOf(forecast)) pdf.text(finding, { width, lineGap: 2 }).moveDown(0.5)
  const top = pdf.y + 14
  drawChart(pdf, forecast, { left: margin + 60, top, width: width - 60, height: 230 })
  pdf.font('regular').fontSize(9).fillColor('#444444')
  pdf.text(
    'Blue: past values. Orange: forecast. About eight of ten future values are expected within the shaded band.',
    margin,
    top + 254,
  )
  pdf.moveDown(1.5)
}

function table(pdf: PDFKit.PDFDocument, header: string[], rows: string[][]): void {
  const width = (pdf.page.width - 2 * margin) / header.length
  const row = (cells: string[], face: 'bold' | 'regular') => {
    if (pdf.y + rowHeight > pdf.page.height - margin) pdf.addPage()
    const top = pdf.y
    pdf.font(face).fontSize(9.5).fillColor('#111111')
    for (const [at, cell] of cells.entries())
      pdf.text(cell, margin + at * width, top, {
        width: width - 8,
        height: rowHeight,
        align: at === 0 ? 'left' : 'right',
        lineBreak: false,
        ellipsis: true,
      })
    pdf
      .moveTo(margin, top + rowHeight - 4)
      .lineTo(pdf.page.width - margin, top + rowHeight - 4)
      .lineWidth(0.5)
      .stroke('#dddddd')
    pdf.x = margin
    pdf.y = top + rowHeight
  }
  row(header, 'bold')
  for (const cells of rows) row(cells, 'regular')
  pdf.moveDown(1.5)
}

function method(pdf: PDFKit.PDFDocument, { trials, origins, model }: Forecast): void {
  if (pdf.y > pdf.page.height - 240) pdf.addPage()
  pdf.font('bold').fontSize(13).fillColor('#111111').text('How this was made', margin).moveDown(0.4)
  pdf.font('regular').fontSize(10)
  pdf.text(
    `Every model forecast this series from ${origins} points in its past, using only the earlier values; the later values measure its error. "${model}" is used. The band covers eight of ten of its errors at each distance. A forecast uses only past values: events without precedent are not included.`,
    { lineGap: 2 },
  )
  pdf.moveDown(0.8)
  table(
    pdf,
    ['Model', 'Mean error', 'Against the last value'],
    trials.map(({ model: name, error, relative }) => [
      name,
      numberText(error),
      `${(relative * 100).toFixed(0)}%`,
    ]),
  )
}
