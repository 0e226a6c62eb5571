import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedAccess } from '../../src/session/shared/access.ts'
import { createFakeClock, createFakeContext, fakeSettings } from '../fake-context.ts'
import { needs } from '../requirements.ts'

describe.runIf(needs('openssl'))('a file for the TLS connections to etcd', () => {
  let directory: string
  const file = (name: string) => join(directory, name)
  const read = (name: string) => readFileSync(file(name), 'utf8')

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'mailclaim-tls-'))
    const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: directory, stdio: 'pipe' })
    const certificate = (name: string, ...key: string[]) =>
      openssl(
        ...['req', '-x509', '-days', '2', '-newkey', ...key, '-nodes', '-subj', '/O=mailclaim'],
        ...['-keyout', `${name}.key`, '-out', `${name}.pem`],
      )
    certificate('client', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256')
    certificate('other', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256')
    certificate('later', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-days', '9')
    certificate('weak', 'rsa:512')
    openssl('pkcs8', '-topk8', '-in', 'client.key', '-passout', 'pass:x', '-out', 'pkcs8.key')
    openssl('ec', '-in', 'client.key', '-aes128', '-passout', 'pass:x', '-out', 'ec.key')
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  /**
   * What a command makes of files with these contents, named by variables.
   *
   * @param days how long after the certificates were made, which are valid for two
   */
  async function accessWith(contents: { ca?: string; cert?: string }, days = 0) {
    for (const [name, text] of Object.entries(contents)) writeFileSync(file(`${name}.txt`), text)
    const files = Object.keys(contents).map((name) => [`store_${name}`, file(`${name}.txt`)])
    const chosen = { store: 'etcd', store_url: 'https://etcd.example:2379', ...Object.fromEntries(files) }
    const clock = createFakeClock(Date.now() + days * 86_400_000)
    const context = createFakeContext({ clock, environment: { settings: chosen } })
    return sharedAccess(context, await fakeSettings(context))
  }

  it('is used as it is if a connection can use it, whichever part comes first', async () => {
    const cert = `Subject: O = mailclaim\n${read('client.key')}${read('client.pem')}`
    const { etcd } = await accessWith({ ca: read('other.pem'), cert })
    expect(etcd.tls).toEqual({ ca: read('other.pem'), cert, key: cert })
  })

  it.each([
    [3, 'expired on 20', 'replace the certificate'],
    [-1, 'is not valid before 20', 'check the clock'],
  ])('is named if its client certificate is used %i days after it was made', async (days, what, hint) => {
    const cert = read('client.pem') + read('client.key')
    await expect(accessWith({ cert }, days)).rejects.toMatchObject({
      code: 'store_not_configured',
      exit: 3,
      message: expect.stringContaining(
        `the client certificate in the file ${file('cert.txt')} (MAILCLAIM_STORE_CERT) ${what}`,
      ),
      hint: expect.stringContaining(hint),
    })
  })

  it('is named if every authority in it has expired', async () => {
    const ca = read('client.pem') + read('other.pem')
    await expect(accessWith({ ca }, 3)).rejects.toMatchObject({
      code: 'store_not_configured',
      exit: 3,
      message: expect.stringContaining(
        `every certificate in the file ${file('ca.txt')} (MAILCLAIM_STORE_CA) has expired`,
      ),
    })
    expect((await accessWith({ ca: ca + read('later.pem') }, 3)).etcd.tls.ca).toContain(read('later.pem'))
  })

  const unusable: Record<string, [cert: () => string, message: string, hint: string]> = {
    'is empty': [() => '', 'FILE holds no certificate', 'cat client.pem client.key >'],
    'holds something else': [() => 'hello', 'FILE holds no certificate', 'cat client.pem client.key >'],
    'holds only the key': [
      () => read('client.key'),
      'FILE holds no certificate',
      'cat client.pem client.key >',
    ],
    'holds only the certificate': [
      () => read('client.pem'),
      'FILE holds no private key',
      'cat client.pem client.key >',
    ],
    'holds the key of another certificate': [
      () => read('client.pem') + read('other.key'),
      "the private key in FILE doesn't match the certificate",
      'cat client.pem client.key >',
    ],
    'holds an encrypted key': [
      () => read('client.pem') + read('pkcs8.key'),
      'the private key in FILE is encrypted',
      'openssl pkey -in client.key',
    ],
    'holds an encrypted key in the older format': [
      () => read('client.pem') + read('ec.key'),
      'the private key in FILE is encrypted',
      'openssl pkey -in client.key',
    ],
    'holds a key that TLS refuses': [
      () => read('weak.pem') + read('weak.key'),
      "FILE can't be used for TLS",
      'use another certificate and key',
    ],
  }
  it.each(Object.keys(unusable))(
    'is named, with the variable, if it is to identify the client and %s',
    async (name) => {
      const [cert, message, hint] = unusable[name] ?? expect.fail()
      await expect(accessWith({ cert: cert() })).rejects.toMatchObject({
        code: 'store_not_configured',
        exit: 3,
        message: expect.stringContaining(
          message.replace('FILE', `the file ${file('cert.txt')} (MAILCLAIM_STORE_CERT)`),
        ),
        hint: expect.stringContaining(hint),
      })
    },
  )

  it.each([
    ['is empty', () => ''],
    ['holds something else', () => 'hello'],
    ['holds a key', () => read('client.key')],
  ])('is named, with the variable, if it is to vouch for the members and %s', async (_name, ca) => {
    await expect(accessWith({ ca: ca() })).rejects.toMatchObject({
      code: 'store_not_configured',
      exit: 3,
      message: `the file ${file('ca.txt')} (MAILCLAIM_STORE_CA) holds no certificate`,
      hint: expect.stringContaining('the authority'),
    })
  })

  it('is named with the setting of the profile if that has it', async () => {
    writeFileSync(file('cert.txt'), '')
    const source = 'profile' as const
    const chosen = {
      store_url: { value: 'https://etcd.example:2379', source },
      store_cert: { value: file('cert.txt'), source },
    }
    const context = createFakeContext()
    const settings = await fakeSettings(context)
    const withFile = { ...settings, chosen: { ...settings.chosen, ...chosen } }
    expect(() => sharedAccess(context, withFile)).toThrow(`${file('cert.txt')} (store-cert) holds`)
  })
})
