#!/usr/bin/env node
const other = unfitRuntime(process.versions)
if (other) {
  process.stderr.write(`error: mailclaim needs Node 20.19 or 22.3, or later: this is ${other}\n`)
  process.stderr.write(
    'hint: get Node from https://nodejs.org, or use the installer, which brings its own: README, "Getting it"\n',
  )
  process.exitCode = 1
} else {
  keepCompiled(process)
  require('../dist/main.js')
    .main()
    // At once: nothing that is left keeps the process alive, and clearing up in memory takes Node 1 to 3 ms.
    .then((code) => process.exit(code))
}

/**
 * The runtime, if the program can't run in it; package.json (`engines`) says the same. This file is in syntax that Node 12
 * reads, because only what is read can say so.
 */
function unfitRuntime({ node, bun, deno }) {
  if (bun || deno) return bun ? `bun ${bun}` : `deno ${deno}`
  const [major, minor] = node.split('.')
  const least = { 20: 19, 21: Infinity, 22: 3 }[major] || 0
  return major < 20 || minor < least ? `Node ${node}` : undefined
}

/**
 * From Node 22.8 on, what V8 has compiled is kept for the next start, which then takes 3 to 8 ms less. It is kept in the
 * person's own cache directory: Node's default is a temporary directory. Whoever could write to the cache would choose what
 * this program does, since V8 does not compare it with the source: where another user could, or where nothing can be
 * written, nothing is kept.
 * NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE are heeded by Node itself.
 */
function keepCompiled({ env, platform, versions, getuid, getBuiltinModule }) {
  // Only to find that there is no such cache, the module would have to be loaded.
  if (Number.parseInt(versions.node, 10) < 22) return
  const cache =
    platform === 'win32'
      ? env.LOCALAPPDATA
      : platform === 'darwin'
        ? env.HOME && `${env.HOME}/Library/Caches`
        : env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`)
  const { basename, dirname, isAbsolute } = getBuiltinModule('node:path')
  if (!cache || !isAbsolute(cache)) return
  const fs = getBuiltinModule('node:fs')
  let directory = `${cache}/mailclaim/compiled`
  try {
    const missing = []
    // Not the directory above the cache directory: one that is not there is nobody's home.
    for (; !fs.existsSync(directory); directory = dirname(directory))
      if (missing.unshift(basename(directory)) > 3) return
    // From here on without links, which others may change.
    directory = fs.realpathSync.native(directory)
    // Windows keeps a person's directories from others by itself.
    if (getuid && !isOutOfReach(directory, missing.length > 0, getuid(), fs, dirname)) return
    // One by one: where nothing can be made (/proc, say), Node's own way to make them all never ends.
    for (const name of missing) {
      directory = `${directory}/${name}`
      fs.mkdirSync(directory, { mode: 0o700 })
    }
    const { enableCompileCache } = getBuiltinModule('node:module')
    if (enableCompileCache) enableCompileCache(directory)
  } catch {
    // Nothing is kept.
  }
}

/**
 * Whether no other user but root can put something into a directory, or another directory in its place: it and all above
 * it are the user's or root's, and not writable by others, unless they cannot enter it.
 *
 * @param sticky whether a directory like /tmp will do, in which others can make something new, but not move what is there.
 */
function isOutOfReach(directory, sticky, user, { lstatSync }, dirname) {
  let open = false
  for (let path = directory, kept = sticky; ; path = dirname(path), kept = true) {
    const { uid, mode } = lstatSync(path)
    if (uid !== user && uid !== 0) return false
    if (mode & 0o022 && !(kept && mode & 0o1000)) open = true
    // Whoever cannot enter a directory does not get at what is below it either.
    if (!(mode & 0o011)) open = false
    if (dirname(path) === path) return !open
  }
}
