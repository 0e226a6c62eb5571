/** What differs from domain to domain in the texts about them, by the word that stands for it: `{ HOST: 'mail' }`. */
export type Particulars = Readonly<Record<string, string | null | undefined>>

/** The words that can stand for something, in the order of the columns that explain them. */
const WORDS = ['DOMAIN', 'ZONE', 'PARENT', 'HOST', 'VALUE', 'FOUND', 'TARGET', 'SERVER', 'TIME', 'ID']

/** Which of these words a text has. */
export function wordsIn(text: string): string[] {
  return WORDS.filter((word) => new RegExp(`\\b${word}\\b`).test(text))
}

/** A text about one domain as it goes for others too: with the particulars put in for the words, it's that text again. */
export function generalize(whole: string, particulars: Particulars): string {
  const values = Object.entries(particulars).flatMap(([word, value]) => (value ? [{ word, value }] : []))
  return replacer(values)(whole)
}

/** What stands before a particular: it's not within a longer name. */
const BEGIN = /(?<![\w-])$/
/** Any other word of a text may be spelled like the host of a record. */
const HOST_BEGIN = /\bhost (?:of the record to )?$/
/** At the top of a zone, its name is also the domain's: that is meant after `instead of`. */
const APEX_BEGIN = /(?:\b(?:zone|(?<!instead |claim )of|for|below|adds|delegate|holds|without) |\w\.)$/
/** Characters that these look at. */
const LONGEST_BEGIN = 30
const END = /(?![\w-]|\.\w)/y

/** Puts in the words, in one pass, so that no word that was put in is taken for a particular. */
function replacer(values: { readonly word: string; readonly value: string }[]): (text: string) => string {
  const zone = values.find(({ word }) => word === 'ZONE')
  const isApex = values.some(({ word, value }) => word === 'DOMAIN' && value === zone?.value)
  // One may be a part of another, and a zone may be the domain.
  values.sort(
    (one, other) => other.value.length - one.value.length || Number(other === zone) - Number(one === zone),
  )
  const beginOf = (word: string) =>
    word === 'HOST' ? HOST_BEGIN : word === 'ZONE' && isApex ? APEX_BEGIN : BEGIN
  const words = values.map(({ word, value }) => ({ word, value, begin: beginOf(word) }))
  return (text) => {
    let general = ''
    for (let from = 0; ; ) {
      let next: { at: number; word: string; value: string } | undefined
      for (const { word, value, begin } of words) {
        const at = find(text, value, begin, from)
        if (at >= 0 && at < (next?.at ?? text.length)) next = { at, word, value }
      }
      if (next === undefined) return general + text.slice(from)
      general += text.slice(from, next.at) + next.word
      from = next.at + next.value.length
    }
  }
}

/** A pattern for each domain would take ten times the time. @returns where the value is, or -1 */
function find(text: string, value: string, begin: RegExp, from: number): number {
  for (let at = text.indexOf(value, from); at >= 0; at = text.indexOf(value, at + 1)) {
    END.lastIndex = at + value.length
    if (begin.test(text.slice(Math.max(0, at - LONGEST_BEGIN), at)) && END.test(text)) return at
  }
  return -1
}
