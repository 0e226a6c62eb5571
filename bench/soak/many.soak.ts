import { test } from 'vitest'
import { createServedWorld } from '../../test/stories/built-program.ts'
import { checkWithFaults } from '../../test/stories/many-faults.ts'

test('a thousand domains with twenty of each of ten faults: every fault is named, and nothing else', async () => {
  await checkWithFaults(await createServedWorld(['--auto-publish']), { domains: 1000, zones: 50, each: 20 })
})
