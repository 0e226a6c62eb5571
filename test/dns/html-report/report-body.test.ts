import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Finding } from '../../../src/dns/diagnosis/finding.ts'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'
import { plainText } from '../../../src/dns/diagnosis/text.ts'
import { delegationPicture } from '../../../src/dns/html-report/delegation-picture.ts'
import { renderHtml } from '../../../src/dns/html-report/report-body.ts'
import { RA, RCODE } from '../fake-dns.ts'
import { timedCheck } from '../timed-check.ts'
import { EXPECTED, FAULTS, type Fault, HEALTHY } from './faults.ts'

const CONTEXT = {
  at: Date.UTC(2026, 10, 22, 2, 30),
  version: '1.2.3',
  resolvers: ['192.0.2.53'],
  command: `mailclaim claims check example.com --value ${EXPECTED} --format html`,
}

async function reportOn(
  { respond, name }: Pick<Fault, 'respond' | 'name'>,
  expected: string | null = EXPECTED,
) {
  const { report } = await timedCheck(respond, { expected, ...(name === undefined ? {} : { name }) })
  return report
}

const faultWith = (code: string) =>
  FAULTS.find((fault) => fault.code === code) ?? FAULTS[0] ?? { respond: HEALTHY }

/** The words of some markup, as a person reads them. */
const words = (markup: string) =>
  markup
    .replace(/<\/?(?:tspan|ins|del|code|span|mark|strong)\b[^>]*>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replace(/\s+/g, ' ')

const picture = (report: CheckReport, size: 'wide' | 'narrow' = 'wide') =>
  String(delegationPicture(report, size, 'a')).replace(/<(title|desc)\b.*?<\/\1>/gs, '')

describe('the picture alone tells the cause when', () => {
  test.each(FAULTS)('$title', async (fault) => {
    const report = await reportOn(fault)
    const [cause] = report.findings
    expect(cause?.code).toBe(fault.code)
    for (const size of ['wide', 'narrow'] as const) {
      const seen = words(picture(report, size)).toLowerCase()
      // The narrow one may shorten the end.
      expect(seen).toContain(
        plainText(cause?.message ?? '')
          .toLowerCase()
          .slice(0, 40),
      )
      for (const { host } of report.nameservers) expect(seen).toContain(host)
    }
  })
})

describe('the picture', () => {
  test('shows the way from the root to each server, and each answer', async () => {
    const report = await reportOn(faultWith('nameserver_unreachable'))
    const seen = words(picture(report))
    const order = [
      'root',
      'com',
      'example.com',
      'ns1.example.com',
      'found',
      'ns2.example.com',
      'no answer',
      'ns3.example.com',
    ]
    let at = 0
    for (const word of order) {
      at = seen.indexOf(word, at)
      expect(at, word).toBeGreaterThan(-1)
    }
    expect(seen).toContain('not asked: the resolver 192.0.2.53 knows the name servers of com')
    expect(seen).toContain('refers to the 3 name servers of example.com')
    expect(seen).toMatch(/Resolvers 192\.0\.2\.53 found · TTL 300/)
    // Silence is a broken line as well.
    expect(picture(report).match(/class="line broken"/g)).toHaveLength(1)
  })

  test('says how long a resolver keeps the old answer', async () => {
    expect(words(picture(await reportOn(faultWith('cached_absence'))))).toMatch(
      /192\.0\.2\.53 no TXT record.{0,3}cached for \d+ s more/,
    )
  })

  test('marks the character that is wrong, at the servers and in what was expected', async () => {
    const drawn = picture(await reportOn(faultWith('characters_changed')))
    expect(drawn).toContain(
      '<tspan>mc-verify=Q7dX2kV9pLr4TzB</tspan><tspan class="differs">8</tspan><tspan>nW</tspan>',
    )
    expect(drawn.match(/<tspan class="differs">B<\/tspan>/g)).toHaveLength(3)
  })

  test('shows the other name that the record is at, or that the name is an alias for', async () => {
    expect(words(picture(await reportOn(faultWith('doubled_name'))))).toContain(
      'example.com.example.com the record is at this name instead',
    )
    expect(words(picture(await reportOn(faultWith('cname_at_name'))))).toContain(
      'shop.hosting.com the name is an alias (CNAME) for this',
    )
  })

  test('says who denies the domain if no registry was reached', async () => {
    const report = await reportOn({
      respond: () => ({ flags: RA | RCODE.NXDOMAIN }),
      name: 'shop.corp',
    })
    expect(report.findings[0]?.code).toBe('domain_not_found')
    expect(words(picture(report))).toContain("root the resolver answers that shop.corp doesn't exist")
  })

  test('marks nothing in a value that is there, beside an older one', async () => {
    const report = await reportOn({ respond: HEALTHY })
    const older = 'mc-verify=A1b2C3d4E5f6G7h8J9'
    const remark: Finding = {
      code: 'stale_token',
      severity: 'info',
      message: '',
      fix: '',
      seen: [older],
      details: {},
    }
    expect(picture({ ...report, findings: [remark] })).not.toContain('class="differs"')
  })

  test('has a name, a description, and its own ids', async () => {
    const page = renderHtml(await reportOn({ respond: HEALTHY }), CONTEXT)
    const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const [, labels] of page.matchAll(/aria-labelledby="([^"]*)"/g))
      for (const label of labels?.split(' ') ?? []) expect(ids).toContain(label)
    expect(page.match(/<svg[^>]*role="img"/g)).toHaveLength(2)
  })

  test('stays small with as many servers as a zone can have', async () => {
    const report = await reportOn({ respond: HEALTHY })
    const [server] = report.nameservers
    if (server === undefined) throw new Error('no server')
    const many = Array.from({ length: 40 }, (_, index) => ({
      ...server,
      host: `ns${index}.example.com`,
      outcome: index === 30 ? ('absent' as const) : server.outcome,
    }))
    const seen = words(picture({ ...report, nameservers: many }))
    expect(seen).toContain('ns30.example.com no TXT record')
    expect(seen).toContain('and 31 more: 31 × found')
  })
})

describe('the page', () => {
  test('begins with the result, the cause, and the record to add, field by field', async () => {
    const page = words(renderHtml(await reportOn(faultWith('missing')), CONTEXT))
    const order = [
      'Needs fixing',
      "The TXT record isn't at example.com",
      'What to do',
      'Add a TXT record in the zone example.com',
      `Zone example.com Host @ Type TXT Value ${EXPECTED}`,
      'Delegation and answers',
      'Findings',
      'Evidence',
      'Observations',
      'Authoritative name servers',
      'How this was checked',
      '2026-11-22 02:30:00 UTC',
      CONTEXT.command,
    ]
    let at = 0
    for (const text of order) {
      at = page.indexOf(text, at)
      expect(at, text).toBeGreaterThan(-1)
    }
  })

  test('shows the expected value above the one found, aligned, with the difference marked', async () => {
    const quoted = renderHtml(await reportOn(faultWith('quoted')), CONTEXT)
    expect(quoted).toContain(
      `<dt>Expected</dt><dd> ${EXPECTED}</dd><dt>Found</dt><dd><del>&quot;</del>${EXPECTED}<del>&quot;</del></dd>`,
    )
    const changed = renderHtml(await reportOn(faultWith('characters_changed')), CONTEXT)
    expect(changed).toContain(
      '<dd>mc-verify=Q7dX2kV9pLr4TzB<ins>8</ins>nW</dd><dt>Found</dt><dd>mc-verify=Q7dX2kV9pLr4TzB<del>B</del>nW</dd>',
    )
  })

  test('says what is missing in a value', async () => {
    const report = await reportOn(faultWith('characters_changed'))
    const findings = report.findings.map((finding) => ({ ...finding, seen: [EXPECTED.slice(0, -2)] }))
    expect(renderHtml({ ...report, findings }, CONTEXT)).toContain(
      '<ins>nW</ins></dd><dt>Found</dt><dd>mc-verify=Q7dX2kV9pLr4TzB8<mark>[missing here]</mark></dd>',
    )
  })

  test('shows the TXT records if no value was expected', async () => {
    const page = words(renderHtml(await reportOn(faultWith('partial_propagation'), null), CONTEXT))
    expect(page).toContain('No value was expected')
    expect(page).toContain('TXT records (not all name servers have these)')
    expect(page).not.toContain('that has to be there')
  })

  test('allows its own style by its hash, and nothing else', async () => {
    const page = renderHtml(await reportOn({ respond: HEALTHY }), CONTEXT)
    const style = /<style>(.*)<\/style>/s.exec(page)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    expect(page).toContain(
      `content="default-src &#39;none&#39;; style-src 'sha256-${hash}'; base-uri`.replaceAll('&#39;', "'"),
    )
    expect(page).not.toMatch(/<script|<link|<img|<iframe|<use|\bsrc=|\bhref=|\bstyle="|url\(|@import/i)
  })

  test('shortens values that nobody can read, and says how long they are', async () => {
    const report = await reportOn(faultWith('characters_changed'))
    const long = `${EXPECTED.slice(0, -1)}${'x'.repeat(64_000)}`
    const page = renderHtml(
      {
        ...report,
        nameservers: report.nameservers.map((row) => ({ ...row, values: Array(30).fill(long) })),
        findings: report.findings.map((finding) => ({ ...finding, seen: [long] })),
      },
      CONTEXT,
    )
    expect(page.length).toBeLessThan(300_000)
    expect(page).toContain('characters)')
    expect(page).toContain('and 10 more')
  })
})
