import type { BuildOptions, Metafile, Plugin } from 'esbuild'

export function chunksAsCommonJs(modules: string, outputs: Metafile['outputs']): BuildOptions
export function currentStringWidth(root: string, packages?: readonly string[]): Plugin
export function leanUndici(): Plugin
export function nativeLocks(): Plugin
