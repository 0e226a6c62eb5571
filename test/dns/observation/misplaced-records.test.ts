import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { candidateNames } from '../../../src/dns/observation/misplaced-records.ts'
import { isWithin } from '../../../src/dns/wire/name.ts'

const namesOf = (name: string, zone: string) =>
  candidateNames(name, zone, 'mc-verify=token').map((candidate) => candidate.name)

describe('the names to search for a misplaced record', () => {
  test('for the top of a zone are those that providers make of what people type', () => {
    expect(namesOf('example.com', 'example.com')).toEqual(
      expect.arrayContaining([
        '*.example.com',
        'example.com.example.com',
        'https://example.com.example.com',
        'example.com.example.com.example.com',
        'example.example.com',
        '@.example.com',
        '"@".example.com',
        'www.example.com',
        '_mc-verify.example.com',
        '_domainkey.example.com',
      ]),
    )
  })

  test('for a name in a zone include its parents and the top of the zone', () => {
    expect(namesOf('shop.eu.example.com', 'example.com')).toEqual(
      expect.arrayContaining([
        'shop.shop.eu.example.com',
        'https://shop.eu.example.com',
        'eu.example.com',
        'example.com',
        '@.example.com',
        'www.example.com',
      ]),
    )
  })

  test.each([
    ['_verify.example.com', 'verify.example.com'],
    ['_verify._mail.example.com', 'verify.mail.example.com'],
  ])('for %s include the name without underscores', (name, without) => {
    expect(namesOf(name, 'example.com')).toContain(without)
  })

  test('are few, distinct, in the zone, and never the name itself', () => {
    const label = fc.stringMatching(/^[a-z0-9_]{1,20}$/)
    fc.assert(
      fc.property(
        fc.array(label, { maxLength: 60 }),
        fc.array(label, { minLength: 1, maxLength: 3 }),
        (below, top) => {
          const zone = top.join('.')
          const name = [...below, zone].join('.')
          const names = namesOf(name, zone)
          expect(names.length).toBeLessThanOrEqual(50)
          expect(new Set(names).size).toBe(names.length)
          expect(names.every((candidate) => isWithin(candidate, zone) && candidate !== name)).toBe(true)
        },
      ),
    )
  })
})
