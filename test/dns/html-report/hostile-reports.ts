import fc from 'fast-check'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'
import { join, quote, text, unquoted } from '../../../src/dns/diagnosis/text.ts'

/** Pieces that end an attribute, an element, a comment, a style or a script, or load something, if they aren't escaped. */
const PIECES = [
  '<script>window.ran = true</script>',
  '"><img src=https://evil.example/p.png onerror="window.ran=true">',
  "' onfocus='window.ran=true' autofocus tabindex='0",
  '</svg><iframe srcdoc="<script>parent.ran=true</script>">',
  '</title></style></textarea></desc></tspan></text>',
  '<style>@import url(https://evil.example/s.css)</style>',
  '<link rel=stylesheet href=https://evil.example/s.css>',
  '<meta http-equiv=refresh content="0;url=https://evil.example/">',
  '<foreignObject><body onload=window.ran=true>',
  '<use href="https://evil.example/u.svg#a"/><animate onbegin=window.ran=true attributeName=x dur=1s>',
  '<a href="javascript:window.ran=true">',
  '<!--',
  '-->',
  ']]>',
  '<![CDATA[',
  '&lt;script&gt;',
  '&#x3c;script&#x3e;',
  '&quot;',
  '<template><form><select><table><plaintext>',
  '\u202e',
  '\u200b',
  '\u0000',
  '\u001b]0;title\u0007',
  '\ud800',
  '\n',
]

export const hostileText: fc.Arbitrary<string> = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 8 })), {
    minLength: 1,
    maxLength: 6,
  })
  .map((pieces) => pieces.join(''))

/** A report in which everything that others can write is hostile. */
export function hostileReport(name: string, values: readonly string[]): CheckReport {
  const [value = ''] = values
  const all = [...values]
  return {
    name,
    expected: value,
    verdict: 'fix',
    ready: false,
    retry_after_seconds: 300,
    zone: name,
    nameservers: (['mismatch', 'match', 'timeout'] as const).map((outcome) => ({
      host: name,
      address: name,
      outcome,
      authoritative: true,
      values: all,
      ttl: 300,
      serial: 1,
      ms: 2,
    })),
    resolvers: [{ address: name, outcome: 'mismatch', values: all, ttl: 300, ms: 1 }],
    path: [
      { zone: 'com', hosts: [name], givenBy: { address: name, port: 53 } },
      { zone: name, hosts: [name, value], givenBy: { address: name, port: 53, host: value } },
    ],
    findings: [
      {
        code: 'doubled_name',
        severity: 'error',
        message: text`Expected ${quote(value)}, seen ${join(values.map(quote), ', ')} at ${name}`,
        fix: text`Enter ${unquoted(value)}`,
        seen: [`${value}${name}`],
        details: { found_at: value, chain: [name, value], [name]: value, resolver: name },
        secondsLeft: 60,
      },
      {
        code: 'resolver_broken',
        severity: 'warning',
        message: name,
        fix: value,
        seen: [name],
        details: { values: all },
      },
    ],
  }
}
