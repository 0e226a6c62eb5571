import type { Output } from '../context.ts'

/** An output that differs only in what becomes of a text. What it says of the terminal stays up to date. */
export function withWrite(output: Output, write: Output['write']): Output {
  return {
    get isTTY() {
      return output.isTTY
    },
    get columns() {
      return output.columns
    },
    write,
  }
}
