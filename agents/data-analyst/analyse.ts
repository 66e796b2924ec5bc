import { answerText } from './answer-text.ts'
import { TableFault } from './bounds.ts'
import { buildChart } from './chart/build-chart.ts'
import { choose } from './choose.ts'
import type { Analysis, AnalysisRequest, Outcome } from './outcome.ts'
import { report } from './report.ts'
import { requestFrom } from './request.ts'
import { describe } from './statistics/describe.ts'
import { findings } from './statistics/findings.ts'
import { correlations, differences, trends } from './statistics/relations.ts'
import type { Column } from './table/columns.ts'
import { inferColumns } from './table/infer.ts'
import { readCsv } from './table/read-csv.ts'
import { tellingPlan } from './telling.ts'

const relationsShown = 20

/** Analyses a table without drawing a chart. Returns an outcome for an unreadable table instead of throwing. */
export function analyse(asked: AnalysisRequest): Outcome {
  try {
    const table = readCsv(asked.csv)
    const columns = inferColumns(table)
    const request = requestFrom(asked.question, asked.answer, columns)
    const choice = choose(request, columns)
    if (typeof choice === 'object' && 'ask' in choice)
      return { kind: 'ask', prompt: choice.ask, columns: choice.columns }
    const figures = columns.map(describe)
    const relations = {
      correlations: correlations(columns),
      trends: trends(columns),
      differences: differences(columns),
    }
    const plan = choice === 'overview' ? tellingPlan(columns, relations) : choice
    const chart = plan && buildChart(plan)
    const answer = choice !== 'overview' && plan && chart ? answerText(plan, chart, request) : undefined
    const rows = table.rows.length
    const said = findings(columns, figures, relations)
    const notes =
      chart || columns.every(({ type }) => type === 'empty')
        ? table.notes
        : [...table.notes, 'No column of the table can be drawn.']
    const markdown = report({
      name: asked.name,
      rows,
      columns,
      figures,
      findings: said,
      notes,
      answer,
      chart,
    })
    const analysis: Analysis = {
      name: asked.name,
      rows,
      delimiter: table.delimiter,
      columns: columns.map((column, at) => ({ ...typeOf(column), ...figures[at] })),
      correlations: relations.correlations.slice(0, relationsShown),
      trends: relations.trends.slice(0, relationsShown),
      differences: relations.differences.slice(0, relationsShown),
      findings: said.map((finding) => finding.replaceAll('**', '')),
      notes,
    }
    return { kind: 'answer', markdown, analysis, ...(chart && { chart }) }
  } catch (error) {
    if (error instanceof TableFault) return { kind: 'decline', reason: error.message }
    throw error
  }
}

function typeOf(column: Column): { name: string; type: string } {
  return {
    name: column.name,
    type: column.type === 'number' && column.identifier ? 'identifier' : column.type,
  }
}
