import { fileURLToPath } from 'node:url'
import { renderAsync } from '@resvg/resvg-js'
import {
  BarChart,
  BoxplotChart,
  CustomChart,
  HeatmapChart,
  LineChart,
  PieChart,
  ScatterChart,
} from 'echarts/charts'
import {
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TitleComponent,
  VisualMapComponent,
} from 'echarts/components'
import * as echarts from 'echarts/core'
import { LabelLayout } from 'echarts/features'
import { SVGRenderer } from 'echarts/renderers'
import type { Chart } from './chart.ts'
import { drawingOf } from './chart-option.ts'

/** Loads the drawing libraries. Only the analysing process imports this file. */
echarts.use([
  BarChart,
  BoxplotChart,
  CustomChart,
  HeatmapChart,
  LineChart,
  PieChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TitleComponent,
  VisualMapComponent,
  LabelLayout,
  SVGRenderer,
])

export function drawSvg(chart: Chart): string {
  const { width, height, option } = drawingOf(chart)
  const canvas = echarts.init(null as never, null, { renderer: 'svg', ssr: true, width, height })
  try {
    canvas.setOption(option as Record<string, unknown>)
    return canvas.renderToSVGString()
  } finally {
    canvas.dispose()
  }
}

/** Bundled font, so that the picture does not depend on the fonts of the machine. */
const fontFiles = ['400Regular/OpenSans_400Regular.ttf', '600SemiBold/OpenSans_600SemiBold.ttf'].map((name) =>
  fileURLToPath(import.meta.resolve(`@expo-google-fonts/open-sans/${name}`)),
)

/** Characters in the bundled font: Latin, Greek, Cyrillic, Hebrew, punctuation, currencies. */
const covered =
  /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Common}\p{Script=Inherited}]*$/u

/** Scale factor for sharp pictures on high-resolution screens. */
export async function drawPng(svg: string): Promise<Uint8Array> {
  const image = await renderAsync(svg, {
    fitTo: { mode: 'zoom', value: 2 },
    background: '#ffffff',
    font: {
      // Searching system fonts is slow and needed only for other scripts.
      loadSystemFonts: !covered.test(svg),
      fontFiles,
      defaultFontFamily: 'Open Sans',
      sansSerifFamily: 'Open Sans',
    },
  })
  return image.asPng()
}
