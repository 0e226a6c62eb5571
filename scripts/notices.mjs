// The licences of the packages that the build puts into the program, which have to travel with it.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.(md|txt|mit|apache))?$/i

/**
 * @param root the folder of the project.
 * @param inputs the files that went into the program, as paths from `root`.
 * @returns the text for all packages among them, each version once.
 */
export async function licenceNotices(root, inputs) {
  const folders = new Set(inputs.map(packageFolder).filter((folder) => folder !== undefined))
  const notices = new Map()
  for (const folder of folders) {
    const { name, version, license, author, homepage } = JSON.parse(
      await readFile(join(root, folder, 'package.json'), 'utf8'),
    )
    const files = (await readdir(join(root, folder))).filter((file) => LICENCE_FILE.test(file)).sort()
    const texts = await Promise.all(files.map((file) => readFile(join(root, folder, file), 'utf8')))
    // A package without the text of its licence says at least which it is, and whose.
    const by = typeof author === 'string' ? author : (author?.name ?? homepage ?? '')
    const text = texts.length > 0 ? texts.map((one) => one.trim()).join('\n\n') : `${license}, ${by}`
    if (license === undefined && texts.length === 0) throw new Error(`${name} says nothing of its licence`)
    notices.set(`${name} ${version}`, `${name} ${version} (${license ?? 'see below'})\n\n${text}\n`)
  }
  const sorted = [...notices].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, notice]) => notice)
  return ['mailclaim contains the following packages.\n', ...sorted].join(`\n${'-'.repeat(80)}\n\n`)
}

/** `node_modules/a/node_modules/@b/c` of a file in it. */
function packageFolder(file) {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file.replace(/^node-builtin:.*/, ''))?.[0]
}
