// What esbuild doesn't do by itself.
import { isBuiltin } from 'node:module'
import { basename, join, relative } from 'node:path'

/** Node's modules that are used as a function, class or object themselves, not only for their members. */
const AS_THEY_ARE = new Set(['events', 'module', 'process', 'stream'])

/**
 * Takes Node's own modules from `process.getBuiltinModule`. `import` and `require` also list everything that such a module
 * exports, and run every getter on it to do so: `node:fs` then loads its streams, and `node:process` the three standard
 * streams, the network and the terminal. That alone is a fifth of a bare start.
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
        // Loaded when a member is used. A prototype, because esbuild copies an object's own members.
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
 * What undici loads at once and this program needs later or never. HTTP/2, with cryptography, TLS and half of Node's file
 * system behind it, takes longer to load than all the rest.
 */
const LEAN_UNDICI = {
  'lib/dispatcher/client-h2.js': `module.exports = () => { throw new Error('HTTP/2 was not offered') }`,
  'lib/dispatcher/socks5-proxy-agent.js': `module.exports = class { constructor() { throw new Error('not HTTP') } }`,
  'lib/web/fetch/body.js': `exports.extractBody = () => { throw new Error('no body is form data') }`,
  // Finds known header names without making strings of them. Filling it takes longer than it saves.
  'lib/core/tree.js': 'exports.tree = { lookup: () => null }',
  // A class for comparison, and the limit on header size.
  'node:http': 'module.exports = { IncomingMessage: class {}, maxHeaderSize: 16384 }',
}

/** undici without the parts that this program doesn't use. */
export function leanUndici() {
  const replaced = mustHappen(...Object.keys(LEAN_UNDICI))
  const contentsOf = (name) => {
    replaced.add(name)
    return LEAN_UNDICI[name]
  }
  return {
    name: 'lean-undici',
    setup(build) {
      build.onResolve({ filter: /^node:http$/ }, ({ path, importer }) =>
        /[\\/]undici[\\/]/.test(importer) ? { path, namespace: 'lean-undici' } : undefined,
      )
      build.onLoad({ filter: /.*/, namespace: 'lean-undici' }, ({ path }) => ({
        contents: contentsOf(path),
      }))
      build.onLoad({ filter: /[\\/]undici[\\/]lib[\\/].*\.js$/ }, ({ path }) => {
        const contents = contentsOf(path.replaceAll('\\', '/').replace(/^.*\/undici\//, ''))
        return contents === undefined ? undefined : { contents }
      })
      build.onEnd(replaced.check)
    },
  }
}

/**
 * The native addon of the locks. Its package finds it through five others; here it is one file per platform in
 * dist/native. If there is none for this machine, loading it throws, as in the package.
 */
export function nativeLocks() {
  const replaced = mustHappen('fs-native-extensions')
  return {
    name: 'native-locks',
    setup(build) {
      build.onLoad({ filter: /fs-native-extensions[\\/]binding\.js$/ }, () => {
        replaced.add('fs-native-extensions')
        return { contents: `module.exports = require('native-locks').load()` }
      })
      build.onResolve({ filter: /^native-locks$/ }, ({ path }) => ({ path, namespace: 'native-locks' }))
      build.onLoad({ filter: /.*/, namespace: 'native-locks' }, () => ({
        contents: `
          export const load = () => process.getBuiltinModule('node:module').createRequire(import.meta.filename)(
            './native/' + process.platform + '-' + process.arch + '/fs-native-extensions.node')`,
      }))
      build.onEnd(replaced.check)
    },
  }
}

/**
 * Puts the modules that every command needs into one chunk, and what nearly every one adds into two more: 5 to 13 ms of a
 * start. Left to itself, esbuild makes a chunk for each set of commands that share a module, and Node takes time to find
 * and load each file. Here every module that is imported dynamically, a package too, also imports these modules, so that
 * all of them form one set; or two, because the lean ones import only the core.
 *
 * @param core modules, as one imports them from the root
 */
export function coreChunk(root, { core, common, lean }) {
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
          ...[...core, ...(lean.includes(path) ? [] : common)].map((one) => `import ${JSON.stringify(one)}`),
          `export * from ${JSON.stringify(path)}`,
          // A package; `export *` leaves out its default.
          ...(path.startsWith('.') ? [] : [`export { default } from ${JSON.stringify(path)}`]),
        ].join('\n'),
        resolveDir: root,
      }))
    },
  }
}

/**
 * Turns the ES modules of a build with `splitting` into CommonJS modules that each export one plain object. esbuild's own
 * conversion makes two objects and three functions for each export: 1 ms of every start, and memory that makes V8 collect
 * garbage before a short command ends. `main.js` and the chunk that it only passes on become one file.
 *
 * @param modules the directory of the ES modules
 * @param outputs of esbuild's metafile
 * @returns options of the build that converts them
 */
export function chunksAsCommonJs(modules, outputs) {
  const chunks = new Map(Object.entries(outputs).map(([path, output]) => [basename(path), output]))
  const names = [...chunks.keys()].filter((name) => name.endsWith('.js'))
  const main = chunks.get('main.js')
  const [passedOn, ...others] = main.imports
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => basename(path))
  if (passedOn === undefined || others.length > 0) throw new Error('main.js does not pass on one chunk')
  // esbuild gives the exports of chunks new names if it minifies them.
  const same = main.exports.filter((member) => chunks.get(passedOn).exports.includes(member))
  if (same.length > 0) throw new Error(`main.js and ${passedOn} both export ${same}`)
  // Exports are getters, because a variable may change. Chunks don't import each other in a circle, in which one would need
  // such an object before it exists: what a chunk imports is needed wherever the chunk is, and elsewhere.
  const exportsOf = (name) => {
    const parts = name === 'main.js' ? [passedOn, name] : [name]
    const members = parts.flatMap((part, at) =>
      chunks.get(part).exports.map((member) => `get ${member}() { return part${at}.${member} }`),
    )
    return [
      ...parts.map((part, at) => `import * as part${at} from './${part}'`),
      `module.exports = { __proto__: null, __esModule: true, ${members} }`,
    ].join('\n')
  }
  return {
    entryPoints: names
      .filter((name) => name !== passedOn)
      .map((name) => ({ in: name, out: name.slice(0, -'.js'.length) })),
    bundle: true,
    // Strict as in ES modules. Tools that tell the formats apart by patterns look for `module.exports` after a semicolon.
    banner: { js: '"use strict";module.exports;' },
    plugins: [
      {
        name: 'chunks-as-commonjs',
        setup(build) {
          build.onResolve({ filter: /.*/ }, ({ path, kind, namespace, importer }) => {
            const name = basename(path)
            if (kind === 'entry-point') return { path: name, namespace: 'exports' }
            if (namespace === 'exports' || (name === passedOn && basename(importer) === 'main.js'))
              return { path: join(modules, name) }
            return { path: name === passedOn ? './main.js' : path, external: true }
          })
          build.onLoad({ filter: /.*/, namespace: 'exports' }, ({ path }) => ({
            contents: exportsOf(path),
            resolveDir: modules,
          }))
        },
      },
    ],
  }
}

/** Fails the build unless each of these was replaced: otherwise a new version of a package would undo it silently. */
function mustHappen(...names) {
  const left = new Set(names)
  return {
    add: (name) => left.delete(name),
    check: () =>
      left.size === 0 ? undefined : { errors: [{ text: `not replaced: ${[...left].join(', ')}` }] },
  }
}
