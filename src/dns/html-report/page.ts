import { createHash } from 'node:crypto'
import { Html, html } from '../../terminal/html.ts'
import { STYLE } from './style.ts'

/**
 * A whole document around a report, or several: one file that runs nothing and loads nothing. Its style is allowed by its
 * hash, and everything else is forbidden.
 */
export function renderPage(title: string, body: Html): string {
  const hash = createHash('sha256').update(STYLE).digest('base64')
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${Html.trusted(STYLE)}</style>
</head>
<body>
${body}
</body>
</html>
`.toString()
}
