import type { Context, Hono } from 'hono'
import { html } from 'hono/html'
import { readText } from './bodies.ts'
import type { DomainClaim } from './claims.ts'
import { readData, readName, readType } from './dns-routes.ts'
import { MISTAKES, publish } from './mistakes.ts'
import { type Html, sendPage } from './page.ts'
import { Problem, validationError } from './problems.ts'
import type { SandboxState } from './sandbox-state.ts'
import {
  DEFAULT_TTL,
  INFRASTRUCTURE_ZONE,
  RECORD_TYPES,
  type RecordData,
  shownData,
  type Zone,
} from './zones.ts'

const PATH = '/_sandbox/dns'

/** What the page says after a change; only these texts can be asked for. */
const DONE: Readonly<Record<string, string>> = {
  added: 'The record was added.',
  deleted: 'The record was deleted.',
  published: 'Published. See what the check says now.',
}

/** The page of the sandbox's DNS provider, where a person edits zones by hand and can plant the usual mistakes. */
export function addDnsPage(app: Hono, sandbox: SandboxState): void {
  app.get(PATH, (c) => {
    const done = c.req.query('done') ?? ''
    return show(
      c,
      sandbox,
      200,
      Object.hasOwn(DONE, done) ? { role: 'status', text: DONE[done] ?? '' } : undefined,
    )
  })

  app.post(PATH, async (c) => {
    const form = new URLSearchParams(await readText(c))
    try {
      return c.redirect(`${PATH}?done=${change(sandbox, form)}`, 303)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return show(c, sandbox, 422, { role: 'alert', text: error.message })
    }
  })
}

/** Does what a form asks for, and gives the key of what to say then. @throws Problem. */
function change(sandbox: SandboxState, form: URLSearchParams): string {
  const { zones, claims } = sandbox
  const field = (name: string) => form.get(name) ?? ''
  switch (field('action')) {
    case 'add': {
      const name = readName(absoluteName(field('name'), field('zone')))
      const type = readType(field('type'))
      const ttl = field('ttl') === '' ? DEFAULT_TTL : Number(field('ttl'))
      if (!(Number.isInteger(ttl) && ttl >= 0 && ttl < 2 ** 31))
        throw validationError('The TTL is not a number of seconds.')
      const present = zones.holding(name)?.names.get(name)?.get(type)?.data ?? []
      zones.set(name, type, { ttl, data: [...present, readData(type, field('value'))] })
      return 'added'
    }
    case 'delete': {
      const name = readName(field('name'))
      const type = readType(field('type'))
      const present = zones.holding(name)?.names.get(name)?.get(type)
      const data = present?.data.filter((one) => presentation(one) !== field('value')) ?? []
      if (present === undefined || data.length === present.data.length)
        throw validationError('It is gone already.')
      if (data.length === 0) zones.remove(name, type)
      else zones.set(name, type, { ...present, data })
      return 'deleted'
    }
    case 'publish': {
      const claim = claims.find(field('claim'))
      const mistake = MISTAKES.find(({ id }) => id === field('mistake'))
      if (claim === undefined || mistake === undefined)
        throw validationError('There is no such claim or record.')
      publish(sandbox, claim, mistake)
      return 'published'
    }
    default:
      throw validationError('The form is incomplete.')
  }
}

/** What is typed is taken as relative to the zone, as most providers do: that is where doubled names come from. */
function absoluteName(typed: string, zone: string): string {
  const name = typed.trim()
  if (name === '' || name === '@') return zone
  return name.endsWith('.') ? name : `${name}.${zone}`
}

function show(
  c: Context,
  sandbox: SandboxState,
  status: 200 | 422,
  said: { role: string; text: string } | undefined,
) {
  const zones = sandbox.zones.list().filter(({ apex }) => apex !== INFRASTRUCTURE_ZONE)
  const pending = sandbox.claims.list().filter((claim) => claim.status === 'pending')
  return sendPage(c, status, {
    title: 'DNS',
    body: html`<header>
<p class="name">mailclaim sandbox</p>
<h1>Your DNS provider</h1>
<p>These zones are served at <code>127.0.0.1:${sandbox.dns.port}</code>, by UDP and TCP. Changes take effect at once.</p>
</header>
${said === undefined ? '' : html`<p class="${said.role === 'alert' ? 'bad' : 'name'}" role="${said.role}">${said.text}</p>`}
<section aria-labelledby="claims">
<h2 id="claims">Pending claims</h2>
${pending.length === 0 ? html`<p>None. Create one with <code>mailclaim claims create example.com</code>.</p>` : pending.map(claimForm)}
</section>
${zones.map(zoneSection)}`,
  })
}

function claimForm({ name, domain_id, record }: DomainClaim, index: number): Html {
  return html`<h3>${name}</h3>
<p>To be added: TXT record at <code>${record.name}</code> with the value <code>${record.value}</code></p>
<form method="post" action="${PATH}">
<input type="hidden" name="action" value="publish">
<input type="hidden" name="claim" value="${domain_id}">
<div class="fields">
<div><label for="mistake-${index}">Publish, or plant a mistake, for ${name}</label>
<select id="mistake-${index}" name="mistake">${MISTAKES.map(({ id, description }) => html`<option value="${id}">${description}</option>`)}</select></div>
<button class="primary">Publish</button>
</div>
</form>`
}

function zoneSection({ apex, serial, names, trouble, second }: Zone, index: number): Html {
  const records = [...names].flatMap(([name, types]) =>
    [...types].flatMap(([type, { ttl, data }]) =>
      data.map((one) => ({ name, type, ttl, text: presentation(one) })),
    ),
  )
  return html`<section aria-labelledby="zone-${index}">
<h2 id="zone-${index}">${apex}</h2>
<p class="quiet">Serial ${serial}</p>
${trouble === undefined ? '' : html`<p class="bad">Its name servers are in trouble: ${trouble}</p>`}
${second === undefined ? '' : html`<p class="bad">Its second name server differs: ${typeof second === 'string' ? second : `it serves serial ${second.serial}`}</p>`}
<ul class="records">${records.map(
    ({ name, type, ttl, text }) => html`<li>
<code>${name} ${ttl} ${type} ${text}</code>
<form method="post" action="${PATH}">
<input type="hidden" name="action" value="delete">
<input type="hidden" name="name" value="${name}">
<input type="hidden" name="type" value="${type}">
<input type="hidden" name="value" value="${text}">
<button aria-label="Delete ${type} ${name} ${text}">Delete</button>
</form>
</li>`,
  )}</ul>
<h3>Add a record to ${apex}</h3>
<form method="post" action="${PATH}">
<input type="hidden" name="action" value="add">
<input type="hidden" name="zone" value="${apex}">
<p class="quiet" id="name-hint-${index}">Name: <code>@</code> for the domain itself. To anything else <code>.${apex}</code> is added.</p>
<div class="fields">
<div><label for="name-${index}">Name</label>
<input id="name-${index}" name="name" value="@" required autocomplete="off" spellcheck="false" aria-describedby="name-hint-${index}"></div>
<div><label for="type-${index}">Type</label>
<select id="type-${index}" name="type">${RECORD_TYPES.map((type) => html`<option>${type}</option>`)}</select></div>
<div><label for="value-${index}">Value</label>
<input id="value-${index}" name="value" required autocomplete="off" spellcheck="false"></div>
<div><label for="ttl-${index}">TTL in seconds</label>
<input id="ttl-${index}" name="ttl" value="${DEFAULT_TTL}" inputmode="numeric" required autocomplete="off"></div>
<button>Add record</button>
</div>
</form>
</section>`
}

/** As in a zone file (RFC 1035, section 5.1): whatever cannot be seen is written as `\DDD`. */
function presentation(data: RecordData): string {
  if (data.type !== 'TXT') return shownData(data)
  const quote = (bytes: Buffer) =>
    [...bytes]
      .map((byte) => {
        if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`
        return byte < 0x20 || byte > 0x7e ? `\\${String(byte).padStart(3, '0')}` : String.fromCharCode(byte)
      })
      .join('')
  return data.strings.map((bytes) => `"${quote(bytes)}"`).join(' ')
}
