/** Where a stem stands: units and how much each is about it. */
export class Posting {
  units = new Int32Array(4)
  impacts = new Float32Array(4)
  length = 0
  /** At least the largest impact. */
  most = 0
  /** Agents that hold the stem. */
  agents = 0

  add(unit: number, impact: number): void {
    if (this.length === this.units.length) this.#grow()
    this.units[this.length] = unit
    this.impacts[this.length] = impact
    this.length += 1
    if (impact > this.most) this.most = impact
  }

  remove(unit: number): void {
    const at = this.units.subarray(0, this.length).indexOf(unit)
    if (at < 0) return
    this.length -= 1
    this.units[at] = this.units[this.length] as number
    this.impacts[at] = this.impacts[this.length] as number
  }

  #grow(): void {
    const units = new Int32Array(this.length * 2)
    units.set(this.units)
    this.units = units
    const impacts = new Float32Array(this.length * 2)
    impacts.set(this.impacts)
    this.impacts = impacts
  }
}
