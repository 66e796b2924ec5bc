/** The part of WebAssembly that this package uses: the types of Node.js leave it out. */
declare namespace WebAssembly {
  interface Module {
    readonly [Symbol.toStringTag]: 'WebAssembly.Module'
  }
  interface Memory {
    readonly buffer: ArrayBuffer
    grow(pages: number): number
  }
  interface Instance {
    readonly exports: Record<string, unknown>
  }
  const Module: new (bytes: Uint8Array) => Module
  const Memory: new (descriptor: { initial: number }) => Memory
  const Instance: new (module: Module, imports: { env: { memory: Memory } }) => Instance
}
