import { numberText } from '../number-text.ts'
import { frame, ink, label, nameAxis, palette, valueAxis } from './chart-style.ts'
import { type ChartOf, type Drawing, scaled } from './drawing.ts'

export function histogram(chart: ChartOf<'histogram'>): object {
  const [first] = chart.bins
  const width = (first?.to ?? 1) - (first?.from ?? 0)
  const every = Math.max(1, Math.ceil(chart.bins.length / 12))
  return {
    ...frame({ ...chart, subtitle: `median ${numberText(chart.median, chart.x.sign)}` }),
    xAxis: valueAxis(chart.x, 'x', {
      min: first?.from,
      max: (first?.from ?? 0) + Math.ceil(chart.bins.length / every) * every * width,
      interval: every * width,
    }),
    yAxis: valueAxis(chart.y, 'y', { minInterval: 1 }),
    series: [
      {
        type: 'custom',
        data: chart.bins.map(({ from, to, count }) => [from, to, count]),
        encode: { x: [0, 1], y: 2 },
        renderItem: binShape,
      },
      {
        type: 'line',
        data: [],
        markLine: {
          silent: true,
          symbol: 'none',
          animation: false,
          data: [{ xAxis: chart.median }],
          label: { show: false },
          lineStyle: { color: palette[1], width: 2, type: 'dashed' },
        },
      },
    ],
  }
}

interface CustomApi {
  value(dimension: number): number
  coord(point: [number, number]): [number, number]
}

/** Draws a bar between two bin borders on a numeric axis, whose ticks are the borders. */
function binShape(_params: unknown, api: CustomApi) {
  const [left, top] = api.coord([api.value(0), api.value(2)])
  const [right, bottom] = api.coord([api.value(1), 0])
  const shape = {
    x: left + 1,
    y: top,
    width: Math.max(1, right - left - 2),
    height: bottom - top,
    r: [3, 3, 0, 0],
  }
  return { type: 'rect', shape, style: { fill: palette[0] } }
}

export function scatter(chart: ChartOf<'scatter'>): object {
  const xs = chart.points.map(([x]) => x)
  const [least, most] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))]
  const many = chart.points.length > 300
  return {
    ...frame(chart),
    xAxis: valueAxis(chart.x, 'x', {
      scale: scaled(xs, 0.5),
      splitLine: { show: true, lineStyle: { color: ink.grid } },
    }),
    yAxis: valueAxis(chart.y, 'y', {
      scale: scaled(
        chart.points.map(([, y]) => y),
        0.5,
      ),
    }),
    series: [
      {
        type: 'scatter',
        data: chart.points,
        symbolSize: many ? 6 : 10,
        itemStyle: { opacity: many ? 0.45 : 0.7, color: palette[0] },
      },
      ...(chart.line
        ? [
            {
              type: 'line',
              data: [least, most].map((x) => [
                x,
                (chart.line?.intercept ?? 0) + (chart.line?.slope ?? 0) * x,
              ]),
              showSymbol: false,
              lineStyle: { color: palette[1], width: 2, type: 'dashed' },
            },
          ]
        : []),
    ],
  }
}

export function box(chart: ChartOf<'box'>): object {
  return {
    ...frame(chart),
    xAxis: nameAxis(
      chart.x,
      chart.boxes.map(({ name }) => name),
      'x',
    ),
    yAxis: valueAxis(chart.y, 'y', {
      scale: scaled(chart.boxes.flatMap(({ five, outliers }) => [...five, ...outliers])),
    }),
    series: [
      {
        type: 'boxplot',
        data: chart.boxes.map(({ five }) => five),
        boxWidth: [20, 70],
        itemStyle: { color: '#dbeafe', borderColor: palette[0], borderWidth: 1.5 },
      },
      {
        type: 'scatter',
        data: chart.boxes.flatMap(({ outliers }, at) => outliers.map((value) => [at, value])),
        symbolSize: 6,
        itemStyle: { color: palette[1], opacity: 0.7 },
      },
    ],
  }
}

export function heatmap(chart: ChartOf<'heatmap'>): Drawing {
  const side = Math.max(44, Math.min(90, 700 / chart.names.length))
  const names = chart.names.map((name) => name)
  const axis = (place: 'x' | 'y') => ({
    ...nameAxis({ name: '' }, names, place, place === 'y' ? { inverse: true } : {}),
    axisLine: { show: false },
    axisLabel: {
      interval: 0,
      fontSize: 12,
      color: ink.text,
      formatter: label,
      ...(place === 'x' && { rotate: names.length > 5 ? 40 : 0 }),
    },
  })
  const option = {
    ...frame(chart),
    xAxis: axis('x'),
    yAxis: axis('y'),
    visualMap: {
      show: false,
      min: -1,
      max: 1,
      inRange: { color: ['#e11d48', '#fecdd3', '#ffffff', '#bfdbfe', '#2563eb'] },
    },
    series: [
      {
        type: 'heatmap',
        data: chart.cells.map((value) => ({
          value,
          label: { color: Math.abs(value[2]) > 0.6 ? '#ffffff' : ink.strong },
        })),
        itemStyle: { borderColor: '#ffffff', borderWidth: 2 },
        label: {
          show: true,
          fontSize: 12,
          color: ink.strong,
          formatter: ({ value }: { value: number[] }) => (value[2] ?? 0).toFixed(2),
        },
      },
    ],
  }
  return {
    width: Math.round(240 + side * names.length * 1.15),
    height: Math.round(190 + side * names.length * 0.75),
    option,
  }
}
