// What esbuild doesn't do by itself. What each of it pays is the median of alternating runs on Node 20 and 24, where a bare start
// takes 33 to 40 ms.
import { readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'

/** Node's modules that CommonJS uses as a function, class or object themselves, not only for their members. */
const AS_THEY_ARE = new Set(['events', 'module', 'process', 'stream'])

/**
 * Takes Node's own modules from `process.getBuiltinModule`. `import` and `require` also list everything that such a module
 * exports, and run every getter on it to do so: `node:fs` then loads its streams, and `node:process` the three standard
 * streams, the network and the terminal. It pays 9 to 19 ms of every start.
 */
export function nodeBuiltins() {
  return {
    name: 'node-builtins',
    setup(build) {
      build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
        if (!isBuiltin(path) || (kind !== 'import-statement' && kind !== 'require-call')) return undefined
        const name = path.replace(/^node:/, '')
        const isWhole = kind === 'require-call' && AS_THEY_ARE.has(name)
        return { path: name, namespace: isWhole ? 'node-builtin' : 'node-members' }
      })
      build.onLoad({ filter: /.*/, namespace: 'node-builtin' }, ({ path }) => ({
        contents: `module.exports = process.getBuiltinModule('node:${path}')`,
      }))
      build.onLoad({ filter: /.*/, namespace: 'node-members' }, ({ path }) => {
        // Nobody imports a part of it. esbuild would make a getter for each of its 150.
        if (path === 'process') return { contents: 'export default process' }
        const load = `let all; const load = () => all ??= process.getBuiltinModule('node:${path}')`
        // Loaded when a member is used, not when esbuild asks whether it is an ES module. A prototype, because esbuild copies an
        // object's own members.
        const get = `(_, name) => name === '__esModule' ? undefined : load()[name]`
        const members = `new Proxy({}, { get: ${get}, has: (_, name) => name in load() })`
        if (path !== 'assert') return { contents: `${load}; module.exports = Object.create(${members})` }
        return {
          contents: `
            ${load}
            const assert = (value, message) => { if (!value) load()(value, message) }
            module.exports = Object.setPrototypeOf(assert, ${members})`,
        }
      })
    },
  }
}

/** Fails the build if something to be replaced was not there: otherwise a new version of the package would undo it silently. */
function expectAll(build, name, left) {
  build.onEnd(() => (left.size === 0 ? undefined : { errors: [{ text: `not in ${name}: ${[...left]}` }] }))
}

/**
 * What undici loads at once and this program needs later or never. HTTP/2, with cryptography, TLS and half of Node's file
 * system behind it, takes 20 to 25 ms to load, and only DNS over HTTPS needs it; form data takes 4, and the other two take 3
 * together.
 */
const LEAN_UNDICI = {
  'lib/dispatcher/client-h2.js': `module.exports = (...all) => require('./client-h2.js?whole')(...all)`,
  'lib/dispatcher/socks5-proxy-agent.js': `module.exports = class { constructor() { throw new Error('not HTTP') } }`,
  'lib/web/fetch/body.js': `exports.extractBody = () => { throw new Error('no body is form data') }`,
  // Finds known header names without making strings of them. Filling it takes longer than it saves.
  'lib/core/tree.js': 'exports.tree = { lookup: () => null }',
  // Of Node's own HTTP it takes the default of an option, and a class that no body is of. It takes 2 to 4 ms to load.
  'node:http': 'exports.maxHeaderSize = 16384; exports.IncomingMessage = class {}',
}

/** undici without the parts that this program doesn't use. */
export function leanUndici() {
  const left = new Set(Object.keys(LEAN_UNDICI))
  return {
    name: 'lean-undici',
    setup(build) {
      build.onResolve({ filter: /^node:http$/ }, ({ path, importer }) =>
        /[\\/]undici[\\/]lib[\\/]/.test(importer) ? { path, namespace: 'lean-undici' } : undefined,
      )
      build.onResolve({ filter: /\?whole$/ }, ({ path, resolveDir }) => ({
        path: join(resolveDir, path.replace('?whole', '')),
        suffix: '?whole',
      }))
      build.onLoad({ filter: /.*/, namespace: 'lean-undici' }, ({ path }) => {
        left.delete(path)
        return { contents: LEAN_UNDICI[path] }
      })
      build.onLoad({ filter: /[\\/]undici[\\/]lib[\\/].*\.js$/ }, ({ path, suffix }) => {
        const name = path.replaceAll('\\', '/').replace(/^.*\/undici\//, '')
        left.delete(name)
        const contents = suffix === '' ? LEAN_UNDICI[name] : undefined
        return contents === undefined ? undefined : { contents }
      })
      expectAll(build, 'undici', left)
    },
  }
}

/**
 * commander's files as ES modules, which they nearly are. Version 15 has such modules, but no longer declares Node 20. Node keeps
 * compiled what runs when a file is loaded, but not what is in the function that esbuild wraps a CommonJS module in: all of
 * commander was parsed at each start. It pays 1 to 2 ms.
 */
export function commanderModules() {
  const left = new Set(['Argument', 'Command', 'CommanderError', 'Help', 'Option', 'suggestSimilar'])
  return {
    name: 'commander-modules',
    setup(build) {
      // Its index.js; an import would get a file that imports that one whole.
      build.onResolve({ filter: /^commander$/ }, ({ path, kind, resolveDir }) =>
        kind === 'require-call' ? undefined : build.resolve(path, { kind: 'require-call', resolveDir }),
      )
      build.onLoad({ filter: /[\\/]commander[\\/](index|lib[\\/]\w+)\.js$/ }, async ({ path }) => {
        const contents = (await readFile(path, 'utf8'))
          .replace(/^const (.+) = require\('(.+)'\)\.\1;$/gm, "import { $1 } from '$2'")
          .replace(/^const (.+) = require\('(.+)'\);$/gm, "import $1 from '$2'")
          .replace(/^exports\.(\w+) = (\w+);/gm, 'export { $2 as $1 };')
          .replace(/^exports\.(\w+) = /gm, 'export const $1 = /* @__PURE__ */ ')
        for (const [, name] of contents.matchAll(/^export \{ (\w+) as/gm)) left.delete(name)
        return { contents }
      })
      expectAll(build, 'commander', left)
    },
  }
}

/** How packages find their addons: through five other packages, or by trying directories and hiding each error. */
const ADDON_SEARCHES = {
  'fs-native-extensions': [
    /fs-native-extensions[\\/]binding\.js$/,
    /^module\.exports = .*/m,
    'module.exports =',
  ],
  keytar: [/keytar\.js$/, /^function loadNativeAddonFromPath[\s\S]*^var keytar = .*/m, 'var keytar ='],
}

/**
 * Takes the native addon of a package from dist/native, where there is one file per platform. Where there is none for this
 * machine, loading it throws. It costs a start nothing: only a renewal, a claim and the keychain's helper load one.
 */
export function nativeAddon(name) {
  return {
    name: `native-${name}`,
    setup(build) {
      const [filter, search, start] = ADDON_SEARCHES[name]
      const left = new Set([search])
      build.onLoad({ filter }, async ({ path }) => {
        const code = await readFile(path, 'utf8')
        if (search.test(code)) left.delete(search)
        const directory = `__dirname + '/native/' + process.platform + '-' + process.arch`
        return { contents: code.replace(search, `${start} require(${directory} + '/${name}.node')`) }
      })
      expectAll(build, name, left)
    },
  }
}

/**
 * Puts the modules that every command needs into one chunk. Left to itself, esbuild makes a chunk for each set of commands
 * that share a module, and Node takes time to find and load each file. Here every module that is imported dynamically, a
 * package too, also imports these, so that all of them form one set. It pays 13 to 16 ms of every start.
 *
 * @param core modules, as one imports them from the root
 */
export function coreChunk(root, core) {
  return {
    name: 'core-chunk',
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path, kind, resolveDir }) => {
        if (kind !== 'dynamic-import') return undefined
        const own = path.startsWith('.')
        return { path: own ? `./${relative(root, join(resolveDir, path))}` : path, namespace: 'with-core' }
      })
      build.onLoad({ filter: /.*/, namespace: 'with-core' }, ({ path }) => ({
        contents: [
          ...core.map((one) => `import ${JSON.stringify(one)}`),
          `export * from ${JSON.stringify(path)}`,
          // A package's default, which `export *` leaves out; not all have one.
          ...(path.startsWith('.')
            ? []
            : [`import * as all from ${JSON.stringify(path)}`, 'export default all.default']),
        ].join('\n'),
        resolveDir: root,
      }))
    },
  }
}
