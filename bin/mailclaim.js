#!/usr/bin/env node
const other = unfitRuntime(process.versions)
if (other) {
  process.stderr.write(`error: mailclaim needs Node 20.19 or 22.3, or later: this is ${other}\n`)
  process.stderr.write(
    'hint: get Node from https://nodejs.org, or use the installer, which brings its own: README, "Install"\n',
  )
  process.exitCode = 1
} else {
  keepCompiled(process)
  require('../dist/main.js')
    .main()
    // process.exit right away: waiting for an empty event loop makes Node free V8's heap, which costs 1 to 3 ms.
    .then((code) => process.exit(code))
}

/**
 * Returns the name and version of the runtime if the program can't run in it, with the same bounds as `engines` in
 * package.json. This file uses syntax that Node 12 can parse: an older Node would print a SyntaxError instead of the message.
 */
function unfitRuntime({ node, bun, deno }) {
  if (bun || deno) return bun ? `bun ${bun}` : `deno ${deno}`
  const [major, minor] = node.split('.')
  const least = { 20: 19, 21: Infinity, 22: 3 }[major] || 0
  return major < 20 || minor < least ? `Node ${node}` : undefined
}

/**
 * Turns on Node's compile cache (Node 22.8 and later), which saves 3 to 8 ms per start, in the user's cache directory.
 * Node's default is the temporary directory, and V8 doesn't compare cached code with its source, so a user who can write to
 * the cache chooses what this program does. The cache therefore stays off if another user could write to its directory, or
 * if the directory can't be made. Node itself follows NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE.
 */
function keepCompiled({ env, platform, versions, getuid, getBuiltinModule }) {
  // Node 20 has no compile cache; asking `node:module` for it would cost the time of loading that module.
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
    // At most three levels may be missing, such as .cache/mailclaim/compiled: a missing home directory must not be created.
    for (; !fs.existsSync(directory); directory = dirname(directory))
      if (missing.unshift(basename(directory)) > 3) return
    // Resolves symbolic links once: another user could change one after the check below.
    directory = fs.realpathSync.native(directory)
    // Windows (no getuid) protects each user's directories with access control lists.
    if (getuid && !isOutOfReach(directory, missing.length > 0, getuid(), fs, dirname)) return
    // One mkdir per level: `recursive: true` never returns below a directory such as /proc, where nothing can be created.
    for (const name of missing) {
      directory = `${directory}/${name}`
      fs.mkdirSync(directory, { mode: 0o700 })
    }
    const { enableCompileCache } = getBuiltinModule('node:module')
    if (enableCompileCache) enableCompileCache(directory)
  } catch {
    // A cache that can't be set up is no error: the program starts without it.
  }
}

/**
 * Whether only the user and root can write to a directory or replace it: the directory and all its ancestors belong to the
 * user or root, and none that others can enter is writable by others.
 *
 * @param sticky whether the directory itself may be writable by others if its sticky bit is set, as in /tmp, where others
 *   can create files but not rename or delete existing ones; the ancestors always may
 */
function isOutOfReach(directory, sticky, user, { lstatSync }, dirname) {
  let open = false
  for (let path = directory, kept = sticky; ; path = dirname(path), kept = true) {
    const { uid, mode } = lstatSync(path)
    if (uid !== user && uid !== 0) return false
    if (mode & 0o022 && !(kept && mode & 0o1000)) open = true
    // Users without the execute bit can't reach anything below this directory, whatever its own permissions.
    if (!(mode & 0o011)) open = false
    if (dirname(path) === path) return !open
  }
}
