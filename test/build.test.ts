import { build, type Plugin } from 'esbuild'
import { expect, test } from 'vitest'
import { currentStringWidth, leanUndici, nativeLocks } from '../scripts/build-plugins.mjs'

const root = new URL('../', import.meta.url).pathname

test.each<[string, Plugin, string]>([
  ['undici', leanUndici(), 'lib/dispatcher/client-h2.js'],
  ['string-width', currentStringWidth(root), 'cli-table3'],
  ['fs-native-extensions', nativeLocks(), 'fs-native-extensions'],
])('the build fails if a new version of %s moves what the build replaces', async (_, plugin, missing) => {
  await expect(
    build({ stdin: { contents: '' }, write: false, logLevel: 'silent', plugins: [plugin] }),
  ).rejects.toThrow(new RegExp(`not replaced: .*${missing}`))
})
