// Minimal scripts that the benchmark compares the program with.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SCRIPTS = {
  empty: '',
  /** Sends one request with undici's `request` and prints the body. */
  page: `
    import Agent from 'undici/lib/dispatcher/agent.js'
    import request from 'undici/lib/api/api-request.js'
    const agent = new Agent()
    const { body } = await request.call(agent, options('/contacts/imports?limit=100'))
    process.stdout.write(await body.text())
    await agent.close()`,
  /** Requests all pages and prints one item per line. */
  pages: `
    import Agent from 'undici/lib/dispatcher/agent.js'
    import request from 'undici/lib/api/api-request.js'
    const agent = new Agent()
    for (let after = ''; ;) {
      const { body } = await request.call(agent, options('/contacts/imports?limit=100' + after))
      const { data, has_more } = JSON.parse(await body.text())
      process.stdout.write(data.map((item) => JSON.stringify(item) + '\\n').join(''))
      if (!has_more) break
      after = '&after=' + data.at(-1).id
    }
    await agent.close()`,
}

const OPTIONS = `
  const options = (path) => ({
    origin: process.env.MAILCLAIM_BASE_URL, path, method: 'GET',
    headers: { accept: 'application/json', authorization: 'Bearer ' + process.env.MAILCLAIM_API_KEY },
  })`

/** Bundles the scripts as the program is bundled, so that a script loads no file without need. @returns path by name */
export async function buildBareScripts(directory) {
  const { build } = await import('esbuild')
  const root = fileURLToPath(new URL('..', import.meta.url))
  const paths = {}
  for (const [name, source] of Object.entries(SCRIPTS)) {
    paths[name] = join(directory, `${name}.mjs`)
    if (source === '') {
      await writeFile(paths[name], '')
      continue
    }
    await build({
      stdin: { contents: OPTIONS + source, resolveDir: root, loader: 'js' },
      outfile: paths[name],
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'node',
      banner: {
        js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);",
      },
      logLevel: 'error',
    })
  }
  return paths
}
