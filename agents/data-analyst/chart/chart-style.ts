import { clip } from '../bounds.ts'
import { tickText } from '../number-text.ts'
import type { Axis, Chart } from './chart.ts'

/** Font families; PNGs use the first one. */
export const fontFamily = "'Open Sans', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"

/** Colours that remain distinguishable in greyscale and with common forms of colour blindness. */
export const palette = ['#2563eb', '#f59e0b', '#0d9488', '#e11d48', '#7c3aed', '#475569']

export const ink = { strong: '#0f172a', text: '#334155', faint: '#64748b', line: '#cbd5e1', grid: '#e9eef5' }

export const labelMaxChars = 24
export const label = (text: string) => clip(text.replace(/\s+/g, ' '), labelMaxChars)

/** Options shared by all charts. */
export function frame({ title, subtitle }: Chart, more: { legend?: string[] } = {}) {
  return {
    animation: false,
    backgroundColor: '#ffffff',
    color: palette,
    textStyle: { fontFamily, color: ink.text },
    title: {
      text: clip(title, 80),
      ...(subtitle && { subtext: clip(subtitle, 110) }),
      left: 28,
      top: 20,
      itemGap: 6,
      textStyle: { fontSize: 20, fontWeight: 600, color: ink.strong, fontFamily },
      subtextStyle: { fontSize: 13, color: ink.faint, fontFamily },
    },
    ...(more.legend && {
      legend: {
        data: more.legend,
        top: subtitle ? 76 : 56,
        left: 28,
        itemWidth: 16,
        itemHeight: 8,
        itemGap: 18,
        icon: 'roundRect',
        textStyle: { fontSize: 12, color: ink.text, fontFamily },
        formatter: label,
      },
    }),
    grid: {
      left: 28,
      right: 44,
      top: 76 + (subtitle ? 20 : 0) + (more.legend ? 24 : 0),
      bottom: 24,
      outerBoundsMode: 'same',
      outerBoundsContain: 'all',
    },
  }
}

const nameStyle = { fontSize: 13, color: ink.faint, fontFamily }
const tickStyle = { fontSize: 12, color: ink.text, fontFamily, hideOverlap: true }

/** Numeric axis with light grid lines and short ticks. */
export function valueAxis({ name, sign }: Axis, side: 'x' | 'y', more: object = {}) {
  return {
    type: 'value' as const,
    name: clip(name, 60),
    nameLocation: 'middle' as const,
    nameGap: side === 'x' ? 32 : 16,
    nameTextStyle: nameStyle,
    axisLine: { show: side === 'x', lineStyle: { color: ink.line } },
    axisTick: { show: false },
    splitLine: { show: side === 'y', lineStyle: { color: ink.grid } },
    axisLabel: { ...tickStyle, formatter: (value: number) => tickText(value, sign) },
    ...more,
  }
}

/** Category axis. */
export function nameAxis({ name }: Axis, names: string[], side: 'x' | 'y', more: object = {}) {
  return {
    type: 'category' as const,
    name: clip(name, 60),
    nameLocation: 'middle' as const,
    nameGap: side === 'x' ? 32 : 16,
    nameTextStyle: nameStyle,
    data: names,
    axisLine: { lineStyle: { color: ink.line } },
    axisTick: { show: false },
    axisLabel: { ...tickStyle, interval: 0, formatter: label },
    ...more,
  }
}
