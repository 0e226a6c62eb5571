// esbuild plugins for a faster start. Savings are medians of alternating runs on Node 20 and 24, whose bare start takes 33 to 40 ms.
import { readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'

/** Node's built-in modules whose `module.exports` CommonJS code uses as a function, a class or a whole object. */
const WHOLE_MODULES = new Set(['events', 'module', 'process', 'stream'])

/**
 * Takes Node's built-in modules from `process.getBuiltinModule`. `import` and `require` enumerate a module's exports, and thereby run
 * every getter among them: `node:fs` then loads its streams, and `node:process` the three standard streams, the network and the
 * terminal. This plugin saves 9 to 19 ms of every start.
 */
export function nodeBuiltins() {
  return {
    name: 'node-builtins',
    setup(build) {
      build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
        if (!isBuiltin(path) || (kind !== 'import-statement' && kind !== 'require-call')) return undefined
        const name = path.replace(/^node:/, '')
        const isWhole = kind === 'require-call' && WHOLE_MODULES.has(name)
        return { path: name, namespace: isWhole ? 'node-builtin' : 'node-members' }
      })
      build.onLoad({ filter: /.*/, namespace: 'node-builtin' }, ({ path }) => ({
        contents: `module.exports = process.getBuiltinModule('node:${path}')`,
      }))
      build.onLoad({ filter: /.*/, namespace: 'node-members' }, ({ path }) => {
        // All code uses the default export of `process`. With named exports esbuild would generate a getter for each of its 150 members.
        if (path === 'process') return { contents: 'export default process' }
        const load = `let all; const load = () => all ??= process.getBuiltinModule('node:${path}')`
        // The module is loaded at the first use of a member; esbuild's own check of `__esModule` doesn't count. The proxy is a
        // prototype, because esbuild copies an object's own members.
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

/** Fails the build if a replacement found nothing to replace: a new version of the package would otherwise undo the plugin silently. */
function expectAll(build, name, left) {
  build.onEnd(() => (left.size === 0 ? undefined : { errors: [{ text: `not in ${name}: ${[...left]}` }] }))
}

/**
 * Replacements for modules that undici loads at once and this program needs later or never. HTTP/2, which loads cryptography, TLS and
 * half of Node's file system, takes 20 to 25 ms, and only DNS over HTTPS needs it. Form data takes 4 ms; SOCKS and the header tree
 * take 3 ms together.
 */
const LEAN_UNDICI = {
  'lib/dispatcher/client-h2.js': `module.exports = (...all) => require('./client-h2.js?whole')(...all)`,
  'lib/dispatcher/socks5-proxy-agent.js': `module.exports = class { constructor() { throw new Error('not HTTP') } }`,
  'lib/web/fetch/body.js': `exports.extractBody = () => { throw new Error('no body is form data') }`,
  // A search tree that finds known header names without creating strings. Filling the tree takes longer than it saves.
  'lib/core/tree.js': 'exports.tree = { lookup: () => null }',
  // undici uses only a default size of `node:http`, and a class of which no body is an instance. Loading it takes 2 to 4 ms.
  'node:http': 'exports.maxHeaderSize = 16384; exports.IncomingMessage = class {}',
}

/** Bundles undici without the modules that this program doesn't use. */
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
 * Rewrites commander's CommonJS files as ES modules; commander 15 has ES modules, but no longer supports Node 20. esbuild wraps a
 * CommonJS module in a function, and Node's compile cache leaves such a function out, so all of commander was parsed at each start.
 * This plugin saves 1 to 2 ms.
 */
export function commanderModules() {
  const left = new Set(['Argument', 'Command', 'CommanderError', 'Help', 'Option', 'suggestSimilar'])
  return {
    name: 'commander-modules',
    setup(build) {
      // Resolves to commander's index.js: an import would get a wrapper module that imports all of index.js.
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

/** The code by which each package searches its native addon, with the file it is in and the beginning of its replacement. */
const ADDON_SEARCHES = {
  'fs-native-extensions': [
    /fs-native-extensions[\\/]binding\.js$/,
    /^module\.exports = .*/m,
    'module.exports =',
  ],
  keytar: [/keytar\.js$/, /^function loadNativeAddonFromPath[\s\S]*^var keytar = .*/m, 'var keytar ='],
}

/**
 * Loads the native addon of a package from dist/native, which has one file per platform. On a platform without a file, loading the
 * addon throws. A start doesn't load an addon: only locks and the keychain's helper do.
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
 * Puts the modules that every command needs into one chunk. By default esbuild makes a chunk for each set of commands that share a
 * module, and Node takes time to find and load each file. With this plugin every dynamically imported module or package also imports
 * the core modules, so that all core modules belong to the same set. This saves 13 to 16 ms of every start.
 *
 * @param core import paths of the core modules, relative to the root
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
          // `export *` leaves out a package's default export; some packages have none.
          ...(path.startsWith('.')
            ? []
            : [`import * as all from ${JSON.stringify(path)}`, 'export default all.default']),
        ].join('\n'),
        resolveDir: root,
      }))
    },
  }
}
