// Lists the packages inside the bundle, whose licenses have to be distributed with the code.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const LICENSE_FILE = /^(licen[cs]e|copying|notice)(\.(md|txt|mit|apache))?$/i

/**
 * Returns the packages that have code in the bundle, each version once, sorted.
 *
 * @param root the project's directory
 * @param outputs the `outputs` of esbuild's metafile
 * @throws if a package has no name, version or license
 */
export async function bundledPackages(root, outputs) {
  const inputs = Object.values(outputs).flatMap((output) =>
    Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  )
  const packages = new Map()
  for (const directory of new Set(inputs.map(packageDirectory))) {
    if (directory === undefined) continue
    const { name, version, license, author, homepage } = JSON.parse(
      await readFile(join(root, directory, 'package.json'), 'utf8'),
    )
    if (!name || !version || !license) throw new Error(`${directory} lacks a name, a version or a license`)
    const files = (await readdir(join(root, directory))).filter((file) => LICENSE_FILE.test(file)).sort()
    const texts = await Promise.all(files.map((file) => readFile(join(root, directory, file), 'utf8')))
    const owner = typeof author === 'string' ? author : (author?.name ?? homepage ?? '')
    // A package without a license file gets the license and the author of its package.json.
    const notice = texts.map((text) => text.trim()).join('\n\n') || `${license}, ${owner}`
    packages.set(`${name} ${version}`, { name, version, license, notice })
  }
  return [...packages].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, found]) => found)
}

/** Returns the text of the license notices, one package after the other. */
export function licenseNotices(packages) {
  const notices = packages.map(
    ({ name, version, license, notice }) => `${name} ${version} (${license})\n\n${notice}\n`,
  )
  return ['mailclaim contains the following packages.\n', ...notices].join(`\n${'-'.repeat(80)}\n\n`)
}

/** Returns the directory of the package that a file belongs to, such as `node_modules/a/node_modules/@b/c`. */
function packageDirectory(file) {
  return /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/.exec(
    file.replaceAll('\\', '/'),
  )?.[0]
}
