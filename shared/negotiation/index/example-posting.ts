/** The examples that contain a stem. */
export class ExamplePosting {
  examples = new Int32Array(2)
  length = 0

  add(example: number): void {
    if (this.length === this.examples.length) {
      const larger = new Int32Array(2 * this.length)
      larger.set(this.examples)
      this.examples = larger
    }
    this.examples[this.length] = example
    this.length += 1
  }

  remove(example: number): void {
    const at = this.examples.subarray(0, this.length).indexOf(example)
    if (at < 0) return
    this.length -= 1
    this.examples[at] = this.examples[this.length] ?? 0
  }
}
