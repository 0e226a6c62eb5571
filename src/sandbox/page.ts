import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { html, raw } from 'hono/html'

/** What `html` gives: text that is escaped already. */
export type Html = ReturnType<typeof html>

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2024;--quiet:#51585f;--paper:#f4f6f7;--card:#fff;--line:#7d868d;--mark:#0b6e4f;--on-mark:#fff;--bad:#a3262a}
@media(prefers-color-scheme:dark){:root{--ink:#eceef0;--quiet:#b0b8be;--paper:#111315;--card:#1a1d1f;--line:#7b848b;--mark:#5fd3a8;--on-mark:#06251a;--bad:#ff9b97}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{width:min(46rem,100%);margin:0 auto;padding:1.5rem 1rem}
main.narrow{width:min(32rem,100%)}
section,.card{margin:1rem 0;padding:1.25rem;border:1px solid var(--line);border-radius:.75rem;background:var(--card)}
h1,h2,h3{margin:0 0 .5rem;line-height:1.25;overflow-wrap:anywhere}
h1{font-size:1.5rem}h2{font-size:1.2rem}h3{font-size:1rem;margin-top:1rem}
p,dl,ul{margin:0 0 .75rem}p,dd,li{overflow-wrap:anywhere}
.name{font-weight:600;color:var(--mark)}.quiet{color:var(--quiet)}.bad{color:var(--bad);font-weight:600}
dt{font-weight:600}dd{margin:0 0 .5rem}
code{font-family:ui-monospace,monospace;font-size:.95em;overflow-wrap:anywhere;white-space:pre-wrap}
.records{list-style:none;padding:0}.records li{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;padding:.5rem 0;border-top:1px solid var(--line)}
.records code{flex:1 1 12rem}
form{margin:0}.fields{display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,12rem),1fr));align-items:end}
label{display:block;font-weight:600}
input,select,button{width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card);color:var(--ink);font:inherit}
button{cursor:pointer;font-weight:600}button.primary{background:var(--mark);border-color:var(--mark);color:var(--on-mark)}
.records button{width:auto}
.choices{display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,10rem),1fr))}
:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
`

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

export interface Page {
  readonly title: string
  readonly body: Html
  readonly narrow?: boolean
  /** Where its forms may lead, beside this server. */
  readonly formTargets?: readonly string[]
}

/** Sends a page that loads nothing, runs nothing, and cannot be framed. */
export function sendPage(
  c: Context,
  status: 200 | 400 | 403 | 404 | 422,
  page: Page,
): Response | Promise<Response> {
  const targets = ["'self'", ...(page.formTargets ?? [])].join(' ')
  c.header(
    'Content-Security-Policy',
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${targets}; base-uri 'none'; frame-ancestors 'none'`,
  )
  c.header('X-Frame-Options', 'DENY')
  c.header('X-Content-Type-Options', 'nosniff')
  c.header('Referrer-Policy', 'same-origin')
  c.header('Cross-Origin-Opener-Policy', 'same-origin')
  c.header('Cache-Control', 'no-store')
  return c.html(
    html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title} · mailclaim sandbox</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main class="${page.narrow === true ? 'narrow' : 'wide'}">
${page.body}
</main>
</body>
</html>
`,
    status,
  )
}
