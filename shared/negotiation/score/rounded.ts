/** At most 4 decimals (spec/negotiation.md#response). */
export const rounded = (value: number): number => Math.round(value * 10_000) / 10_000
