import { html } from '../terminal/html.ts'

/** A page that redirects a browser to an http(s) address, and loads and runs nothing. */
export function renderRedirectPage(url: string): string {
  const address = new URL(url).href
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${address}">
<title>Sign in · mailclaim</title>
</head>
<body>
<p><a href="${address}">Continue to sign in</a></p>
</body>
</html>
`.toString()
}
