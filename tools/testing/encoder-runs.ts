import { createRequire } from 'node:module'

/** Whether the optional package onnxruntime-node, which runs the sentence encoder, is installed. */
export function encoderRuns(): boolean {
  try {
    createRequire(import.meta.url).resolve('onnxruntime-node')
    return true
  } catch {
    return false
  }
}
