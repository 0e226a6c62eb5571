// What esbuild does not do by itself.
import { readdir, readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'

/** Modules of Node that are used as functions, classes or objects of their own and not for their members alone. */
const AS_THEY_ARE = new Set(['events', 'module', 'process', 'stream'])

/**
 * Gives the program Node's own modules by way of `process.getBuiltinModule`. `import` and `require` also list all that
 * such a module exports, and to do so run every getter on it: `node:fs` then loads its streams, and `node:process` the
 * three standard streams, the network and the terminal. That alone is a fifth of a bare start.
 */
export function nodeBuiltins() {
  return {
    name: 'node-builtins',
    setup(build) {
      build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
        if (!isBuiltin(path) || (kind !== 'import-statement' && kind !== 'require-call')) return undefined
        return { path: path.replace(/^node:/, ''), namespace: 'node-builtin' }
      })
      build.onLoad({ filter: /.*/, namespace: 'node-builtin' }, ({ path }) => {
        const load = `process.getBuiltinModule(${JSON.stringify(`node:${path}`)})`
        if (AS_THEY_ARE.has(path)) return { contents: `module.exports = ${load}` }
        // Loaded when a member is used. A prototype, because the bundler copies all that an object has itself.
        const members = `new Proxy({}, { get: (_, name) => ${load}[name], has: (_, name) => name in ${load} })`
        if (path !== 'assert') return { contents: `module.exports = Object.create(${members})` }
        return {
          contents: `
            const assert = (value, message) => { if (!value) ${load}(value, message) }
            module.exports = Object.setPrototypeOf(assert, ${members})`,
        }
      })
    },
  }
}

/**
 * What undici loads at once and this program uses late or never. HTTP/2 alone, with cryptography, TLS and half of Node's
 * file system behind it, takes longer to load than all the rest.
 */
const LEAN_UNDICI = {
  'lib/dispatcher/client-h2.js': `module.exports = () => { throw new Error('HTTP/2 was not offered') }`,
  'lib/dispatcher/socks5-proxy-agent.js': `module.exports = class { constructor() { throw new Error('not HTTP') } }`,
  'lib/web/fetch/body.js': `exports.extractBody = () => { throw new Error('no body is form data') }`,
  'lib/util/runtime-features.js': 'exports.runtimeFeatures = { has: () => false }',
  // Known names of headers, found without making a string of them: it takes longer to fill than it saves.
  'lib/core/tree.js': 'exports.tree = { lookup: () => null }',
  // A class to compare with, and the limit to the size of headers.
  'node:http': 'module.exports = { IncomingMessage: class {}, maxHeaderSize: 16384 }',
  'node:zlib': `
    for (const name of ['createInflate', 'createGunzip', 'createBrotliDecompress'])
      exports[name] = () => process.getBuiltinModule('node:zlib')[name]()`,
}

/** undici without what this program does not use of it. */
export function leanUndici() {
  return {
    name: 'lean-undici',
    setup(build) {
      build.onResolve({ filter: /^node:(http|zlib)$/ }, ({ path, importer }) =>
        /[\\/]undici[\\/]/.test(importer) ? { path, namespace: 'lean-undici' } : undefined,
      )
      build.onLoad({ filter: /.*/, namespace: 'lean-undici' }, ({ path }) => ({
        contents: LEAN_UNDICI[path],
      }))
      build.onLoad({ filter: /[\\/]undici[\\/]lib[\\/].*\.js$/ }, ({ path }) => {
        const contents = LEAN_UNDICI[path.replaceAll('\\', '/').replace(/^.*\/undici\//, '')]
        return contents === undefined ? undefined : { contents }
      })
    },
  }
}

/**
 * The lock's native addon, which its package finds through five others: here one file a platform, copied to
 * dist/native. Where there is none for this machine, loading it throws, as in the package.
 */
export function nativeLocks() {
  return {
    name: 'native-locks',
    setup(build) {
      build.onLoad({ filter: /fs-native-extensions[\\/]binding\.js$/ }, () => ({
        contents: `module.exports = require('native-locks').load()`,
      }))
      build.onResolve({ filter: /^native-locks$/ }, ({ path }) => ({ path, namespace: 'native-locks' }))
      build.onLoad({ filter: /.*/, namespace: 'native-locks' }, () => ({
        contents: `
          export const load = () => process.getBuiltinModule('node:module').createRequire(import.meta.filename)(
            './native/' + process.platform + '-' + process.arch + '/fs-native-extensions.node')`,
      }))
    },
  }
}

/**
 * Everything that a start needs in one chunk. Left to itself, the bundler makes a chunk for each set of commands that
 * share a module, and every file that Node loads takes time. A file that is imported dynamically is reached by way of
 * the core anyway; saying so in each of them makes it one set.
 *
 * @param core the modules that every command needs, from `root`.
 * @param usual those that nearly every command needs.
 * @param lean the files that do without the usual ones.
 */
export function fewChunks(root, core, usual, lean) {
  const paths = (files) => files.map((file) => join(root, file))
  const sparing = paths(lean)
  return {
    name: 'few-chunks',
    setup(build) {
      const late = new Set()
      build.onStart(async () => {
        for (const file of await readdir(join(root, 'src'), { recursive: true })) {
          if (!file.endsWith('.ts')) continue
          const importer = join(root, 'src', file)
          for (const [, path] of (await readFile(importer, 'utf8')).matchAll(/\bimport\('([^']+)'\)/g)) {
            if (isBuiltin(path)) continue
            const found = await build.resolve(path, {
              importer,
              resolveDir: dirname(importer),
              kind: 'dynamic-import',
            })
            if (!found.external) late.add(found.path)
          }
        }
      })
      build.onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
        if (!late.has(path)) return undefined
        const source = await readFile(path, 'utf8')
        // An import would make another kind of module of CommonJS.
        if (!/^(import|export)\b/m.test(source)) return undefined
        const needed = paths(sparing.includes(path) ? core : [...core, ...usual])
        const imports = needed.map((file) => `import ${JSON.stringify(file)};`)
        // On the first line, so that the lines of a stack trace stay right.
        return { contents: imports.join('') + source, loader: path.endsWith('.ts') ? 'ts' : 'js' }
      })
    },
  }
}
