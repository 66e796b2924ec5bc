/** At most 4 decimals (design gaps, "Negotiation"). */
export const rounded = (value: number): number => Math.round(value * 10_000) / 10_000
