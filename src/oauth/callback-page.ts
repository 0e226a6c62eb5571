import { CliError, Exit } from '../errors.ts'
import { Html, html } from '../terminal/html.ts'

/** The page at the end of the redirect. Its texts may come from anyone: they are escaped when it is rendered. */
export interface CallbackPage {
  readonly status: 200 | 400 | 404 | 405 | 421 | 500
  readonly title: string
  readonly text: string
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2024;--paper:#fbfcfd;--card:#fff;--line:#d7dce0;--mark:#0b6e4f}
@media(prefers-color-scheme:dark){:root{--ink:#eceef0;--paper:#111315;--card:#1a1d1f;--line:#3a3f42;--mark:#5fd3a8}}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{box-sizing:border-box;width:min(32rem,calc(100% - 2rem));padding:2rem;border:1px solid var(--line);border-radius:.75rem;background:var(--card)}
h1{margin:0 0 .5rem;font-size:1.375rem;overflow-wrap:anywhere}
p{margin:0;overflow-wrap:anywhere}
p.name{margin-bottom:1rem;font-weight:600;color:var(--mark)}`

/** The page as HTML; its style has the nonce of the content security policy. */
export function renderCallbackPage(page: CallbackPage, nonce: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title} · mailclaim</title>
<style nonce="${nonce}">${Html.trusted(STYLE)}</style>
</head>
<body>
<main>
<p class="name">mailclaim</p>
<h1>${page.title}</h1>
<p>${page.text}</p>
</main>
</body>
</html>
`.toString()
}

/** Headers that prevent the page from running, loading, framing, leaking or storing anything. */
export function callbackPageHeaders(nonce: string): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    connection: 'close',
  }
}

const STILL_WAITING = 'The sign-in in your terminal is still waiting for the right answer.'

export const SIGNED_IN: CallbackPage = {
  status: 200,
  title: 'You are signed in',
  text: 'The session is stored. You can close this window and return to your terminal.',
}

export function notSignedInPage(error: unknown): CallbackPage {
  return {
    status: error instanceof CliError && error.exit !== Exit.bug ? 400 : 500,
    title: 'You are not signed in',
    text: `${error instanceof CliError ? error.message : 'Something unexpected happened'}. See your terminal for more.`,
  }
}

/** For a redirect that isn't the answer to the login. */
export function unusableRedirectPage(why: string): CallbackPage {
  return { status: 400, title: 'This answer cannot be used', text: `Reason: ${why}. ${STILL_WAITING}` }
}

/** The pages for requests that can't be the redirect. */
export const ERROR_PAGES = {
  methodNotAllowed: { status: 405, title: 'Not allowed', text: STILL_WAITING },
  notFound: { status: 404, title: 'Nothing here', text: STILL_WAITING },
  wrongHost: { status: 421, title: 'Wrong address', text: STILL_WAITING },
  wrongState: {
    status: 400,
    title: 'This is not the answer to the sign-in that is waiting',
    text: `Its state does not match. If you started more than one sign-in, finish the newest. ${STILL_WAITING}`,
  },
  alreadyUsed: {
    status: 400,
    title: 'Already answered',
    text: 'This sign-in already has its answer. See your terminal.',
  },
} as const satisfies Record<string, CallbackPage>
