import type { Plugin } from 'esbuild'

export function currentStringWidth(root: string, packages?: readonly string[]): Plugin
export function leanUndici(): Plugin
export function nativeLocks(): Plugin
