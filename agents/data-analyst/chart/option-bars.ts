import { clip } from '../bounds.ts'
import { tickText } from '../number-text.ts'
import { frame, ink, label, nameAxis, palette, valueAxis } from './chart-style.ts'
import { type ChartOf, type Drawing, size } from './drawing.ts'

export function bar(chart: ChartOf<'bar'>): Drawing {
  const longest = chart.names.reduce((most, name) => Math.max(most, name.length), 0)
  // Long or many names need horizontal bars.
  const lying = !chart.ordered && (longest > 12 || chart.names.length > 8)
  const order = <Item>(items: Item[]) => (lying ? items.toReversed() : items)
  const names = nameAxis(chart.x, order(chart.names), lying ? 'y' : 'x', lying ? {} : turned(chart.names))
  const values = valueAxis(chart.y, lying ? 'x' : 'y')
  const several = chart.series.length > 1
  const option = {
    ...frame(chart, several ? { legend: chart.series.map(({ name }) => name) } : {}),
    xAxis: lying ? { ...values, splitLine: { show: true, lineStyle: { color: ink.grid } } } : names,
    yAxis: lying ? names : values,
    series: chart.series.map((series) => ({
      type: 'bar',
      name: series.name,
      data: order(series.values).map((value) => (value !== null && value < 0 ? below(value, lying) : value)),
      barMaxWidth: lying ? 22 : 64,
      barCategoryGap: '35%',
      itemStyle: { borderRadius: lying ? [0, 4, 4, 0] : [4, 4, 0, 0] },
      label: {
        show: chart.names.length * chart.series.length <= 20,
        position: lying ? 'right' : 'top',
        fontSize: 12,
        color: ink.faint,
        formatter: ({ value }: { value: number }) => tickText(value, chart.y.sign),
      },
      labelLayout: { hideOverlap: true },
    })),
  }
  const rows = chart.names.length * (several ? chart.series.length * 0.7 : 1)
  return {
    width: size.width,
    height: lying ? Math.max(360, Math.round(160 + rows * 30)) : size.height,
    option,
  }
}

/** Negative bars are labelled on the opposite side. */
function below(value: number, lying: boolean) {
  return {
    value,
    itemStyle: { borderRadius: lying ? [4, 0, 0, 4] : [0, 0, 4, 4] },
    label: { position: lying ? 'left' : 'bottom' },
  }
}

/** Rotates labels that would overlap. */
function turned(names: string[]): object {
  const longest = names.reduce((most, name) => Math.max(most, name.length), 0)
  return names.length * Math.min(longest, 24) > 110
    ? {
        axisLabel: {
          interval: 0,
          rotate: 40,
          fontSize: 12,
          color: ink.text,
          formatter: (text: string) => clip(text, 18),
        },
        nameGap: 70,
      }
    : {}
}

export function pie(chart: ChartOf<'pie'>): object {
  const sum = chart.slices.reduce((all, { value }) => all + value, 0)
  return {
    ...frame(chart),
    color: [...palette, '#94a3b8', '#a3a3a3'],
    series: [
      {
        type: 'pie',
        radius: ['42%', '68%'],
        center: ['50%', '56%'],
        data: chart.slices,
        itemStyle: { borderColor: '#ffffff', borderWidth: 2 },
        label: {
          fontSize: 13,
          color: ink.text,
          lineHeight: 19,
          formatter: ({ name, value }: { name: string; value: number }) =>
            `${label(name)}\n${tickText(value)} (${sum > 0 ? Math.round((value / sum) * 1000) / 10 : 0} %)`,
        },
      },
    ],
  }
}
