import { periodText } from '../period-text.ts'
import { frame, ink, nameAxis, valueAxis } from './chart-style.ts'
import { type ChartOf, scaled } from './drawing.ts'

export function line(chart: ChartOf<'line'>): object {
  const starts = [...new Set(chart.series.flatMap(({ points }) => points.map(([at]) => at)))].sort(
    (a, b) => a - b,
  )
  const several = chart.series.length > 1
  const marked = starts.length <= 40
  return {
    ...frame(chart, several ? { legend: chart.series.map(({ name }) => name) } : {}),
    xAxis: nameAxis(
      chart.x,
      starts.map((at) => periodText(at, chart.period)),
      'x',
      {
        boundaryGap: false,
        axisLabel: {
          fontSize: 12,
          color: ink.text,
          hideOverlap: true,
          showMaxLabel: null,
          formatter: (text: string) => text,
        },
      },
    ),
    yAxis: valueAxis(chart.y, 'y', {
      scale: scaled(chart.series.flatMap(({ points }) => points.map(([, value]) => value))),
    }),
    series: chart.series.map(({ name, points }) => {
      const values = new Map(points)
      return {
        type: 'line',
        name,
        data: starts.map((at) => values.get(at) ?? null),
        connectNulls: true,
        lineStyle: { width: 2.5 },
        showSymbol: marked,
        symbol: 'circle',
        symbolSize: 7,
        ...(!several && { areaStyle: { opacity: 0.08 } }),
      }
    }),
  }
}
