// The packages inside the bundle: their license notices, and a software bill of materials for scanners, which can't see
// them in a package tree.
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'

const LICENSE_FILE = /^(licen[cs]e|copying|notice)(\.(md|txt|mit|apache))?$/i

/**
 * The packages that have code in the bundle, each version once, sorted.
 *
 * @param root the project's directory
 * @param metafile esbuild's record of the bundle
 * @param dist the directory with the source maps; they also name packages that another one already contained when it was
 *   published
 * @throws where a package doesn't say its version or license
 */
export async function bundledPackages(root, metafile, dist) {
  const inputs = Object.values(metafile.outputs).flatMap((output) =>
    Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  )
  const maps = (await readdir(dist)).filter((name) => name.endsWith('.js.map'))
  const sources = await Promise.all(
    maps.map(async (name) =>
      JSON.parse(await readFile(join(dist, name), 'utf8')).sources.map((source) =>
        relative(root, join(dist, source)),
      ),
    ),
  )
  const packages = new Map()
  for (const directory of new Set([...inputs, ...sources.flat()].map(packageDirectory))) {
    if (directory === undefined) continue
    const { name, version, license, author, homepage } = JSON.parse(
      await readFile(join(root, directory, 'package.json'), 'utf8'),
    )
    if (!name || !version || !license) throw new Error(`${directory} lacks a name, a version or a license`)
    const files = (await readdir(join(root, directory))).filter((file) => LICENSE_FILE.test(file)).sort()
    const texts = await Promise.all(files.map((file) => readFile(join(root, directory, file), 'utf8')))
    const owner = typeof author === 'string' ? author : (author?.name ?? homepage ?? '')
    // A package without a license file at least says which license it has, and whose.
    const notice = texts.map((text) => text.trim()).join('\n\n') || `${license}, ${owner}`
    packages.set(`${name} ${version}`, { name, version, license, notice })
  }
  return [...packages].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, found]) => found)
}

/** The license texts, which have to be distributed with the code. */
export function licenseNotices(packages) {
  const notices = packages.map(
    ({ name, version, license, notice }) => `${name} ${version} (${license})\n\n${notice}\n`,
  )
  return ['mailclaim contains the following packages.\n', ...notices].join(`\n${'-'.repeat(80)}\n\n`)
}

/** CycloneDX 1.6 as JSON. Without time and serial number, so that the same sources make the same file. */
export function billOfMaterials(manifest, packages) {
  const program = component('application', manifest)
  const components = packages.map((one) => component('library', one))
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { lifecycles: [{ phase: 'build' }], component: program },
    components,
    dependencies: [{ ref: program.purl, dependsOn: components.map(({ purl }) => purl) }],
  }
  return `${JSON.stringify(bill, undefined, 2)}\n`
}

function component(type, { name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const [, group, bare] = /^(@[^/]+)\/(.+)$/.exec(name) ?? [undefined, undefined, name]
  // More than one license is an SPDX expression, "MIT OR Apache-2.0".
  const licenses = license.includes(' ') ? [{ expression: license }] : [{ license: { id: license } }]
  return { type, 'bom-ref': purl, ...(group && { group }), name: bare, version, licenses, purl }
}

/** `node_modules/a/node_modules/@b/c` for a file in it. */
function packageDirectory(file) {
  return /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/.exec(
    file.replaceAll('\\', '/'),
  )?.[0]
}
