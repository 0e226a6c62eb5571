import { describe, expect, it } from 'vitest'
import type { Context } from '../../src/context.ts'
import { EtcdClient } from '../../src/credentials/etcd/client.ts'
import { createFakeContext } from '../fake-context.ts'

/** A member that gives these bodies with status 200, the last one again and again. */
function clientOf(...bodies: string[]) {
  const { clock, random, interrupts } = createFakeContext()
  let asked = 0
  const http = {
    send: async () => ({
      status: 200,
      headers: {},
      body: (async function* () {
        yield Buffer.from(bodies[Math.min(asked++, bodies.length - 1)] ?? '')
      })(),
    }),
  } as unknown as Context['http']
  const access = { members: [new URL('https://etcd.example')], tls: {}, user: undefined }
  return new EtcdClient({ clock, random, interrupts, http }, access)
}

const header = { cluster_id: '14841639068965178418', revision: '7' }
const EMPTY = JSON.stringify({ header })

describe('an answer with status 200', () => {
  it.each(['', '<html>Welcome</html>', '{}', '[]', '{"header":{}}', JSON.stringify({ header, count: '1' })])(
    'that is not from etcd does not say that the key is gone: %s',
    async (body) => {
      await expect(clientOf(body).read('/a')).rejects.toMatchObject({ code: 'store_unavailable' })
      await expect(clientOf(body).replace('/a', '6', 'x')).rejects.toMatchObject({
        code: 'store_unavailable',
      })
    },
  )

  it('of a failed transaction has to say what is at the key', async () => {
    await expect(clientOf(EMPTY).replace('/a', '6', 'x')).rejects.toMatchObject({ code: 'store_unavailable' })
    const failed = JSON.stringify({ header, responses: [{ response_range: { header } }] })
    expect(await clientOf(failed).replace('/a', '6', 'x')).toMatchObject({
      succeeded: false,
      found: undefined,
    })
  })

  it('of etcd is used after one that is not', async () => {
    expect(await clientOf('<html>', EMPTY).read('/a')).toMatchObject({ revision: '7', found: undefined })
  })
})
