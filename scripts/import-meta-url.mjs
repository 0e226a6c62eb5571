// What `import.meta.url` is in the bundle: the address of the chunk. A package takes it to find files beside it.
export const importMetaUrl = process.getBuiltinModule('node:url').pathToFileURL(import.meta.filename).href
