#!/usr/bin/env node
keepCompiled(process)
// A bug's stack trace is shown with --verbose alone; only then are the maps worth reading.
if (process.argv.includes('--verbose')) process.setSourceMapsEnabled(true)
require('../dist/main.js')
  .main()
  .then((code) => {
    process.exitCode = code
    // After a signal, work that did not heed it in time must not keep the process alive.
    if (code >= 128) process.exit()
  })

/**
 * From Node 22.8 on, what V8 has compiled is kept for the next start, in the person's own cache folder: Node's default
 * is a temporary folder, which others on the machine could fill before us. Where nothing can be written, nothing is
 * kept. NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE are heeded by Node itself.
 */
function keepCompiled({ env, platform, versions, getBuiltinModule }) {
  // Only to find that there is no such cache, the module would have to be loaded.
  if (Number.parseInt(versions.node, 10) < 22) return
  const cache =
    platform === 'win32'
      ? env.LOCALAPPDATA
      : platform === 'darwin'
        ? env.HOME && `${env.HOME}/Library/Caches`
        : env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`)
  if (!cache || !getBuiltinModule('node:path').isAbsolute(cache)) return
  const { existsSync, mkdirSync } = getBuiltinModule('node:fs')
  try {
    // One by one: where nothing can be made (/proc, say), Node's own way to make them all never ends.
    for (const folder of [cache, `${cache}/mailclaim`, `${cache}/mailclaim/compiled`])
      if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
  } catch {
    return
  }
  getBuiltinModule('node:module').enableCompileCache?.(`${cache}/mailclaim/compiled`)
}
