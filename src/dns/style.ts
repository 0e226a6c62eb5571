const COLORS = `--ink:#1b2228;--soft:#55606a;--line:#d5dbe0;--paper:#f6f7f8;--card:#fff;--good:#0a6b4b;--bad:#b3251c;--warning:#7d5200;--tint:#eef1f3;--focus:#0b5cad`
const DARK = `--ink:#e8ecef;--soft:#a3aeb8;--line:#39424a;--paper:#12161a;--card:#1a2026;--good:#63d2a4;--bad:#ff9d92;--warning:#f0c465;--tint:#252d34;--focus:#7db8ff`
const MONO = "ui-monospace,'SF Mono','Cascadia Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
const SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"

/** Style sheet of the HTML report, for light and dark screens, phones and paper. */
export const HTML_STYLE_SHEET = `:root{color-scheme:light dark;${COLORS}}
@media screen and (prefers-color-scheme:dark){:root{${DARK}}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.55 ${SANS};overflow-wrap:anywhere}
header,main,footer{width:min(62rem,100% - 2rem);margin-inline:auto}
header{padding-block:1.25rem .75rem;display:flex;flex-wrap:wrap;gap:.25rem 1rem;justify-content:space-between}
header,footer,.meta,summary{color:var(--soft);font-size:.875rem}
header p{margin:0}
footer{padding-bottom:2.5rem}
h1,h2,h3{font-size:1rem;line-height:1.25;margin:0}
h1{font-size:clamp(1.375rem,1.1rem + 1.4vw,1.875rem)}
h2{font-size:1.125rem}
p{margin:.375rem 0}
code,.compare dd{font-family:${MONO};font-size:.9375em}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.25rem 1.25rem;margin:.75rem 0 0}
dt{color:var(--soft)}
dd{margin:0;min-width:0}
ol,ul{list-style:none;margin:0;padding:0}
.panel{background:var(--card);border:1px solid var(--line);border-left:6px solid var(--tone,var(--line));border-radius:12px;padding:1.25rem;margin-bottom:1.25rem}
.good{--tone:var(--good)}.bad{--tone:var(--bad)}.warning{--tone:var(--warning)}.faint{--tone:var(--soft)}
.status{color:var(--tone);font-weight:600}
.icon{display:inline-block;width:1.25rem;text-align:center}
.findings>li{padding-block:1rem}
.findings>li+li{border-top:1px solid var(--line)}
.compare{background:var(--tint);border-radius:8px;padding:.625rem .875rem}
.compare dd{white-space:pre-wrap}
ins,del{font-weight:700;text-decoration:underline 2px;text-underline-offset:3px}
ins{color:var(--good)}
del{color:var(--bad)}
summary{cursor:pointer;padding-block:.25rem}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
.path{margin-top:1rem;border-left:2px solid var(--line)}
.path>li{position:relative;padding:0 0 1.25rem 1.25rem}
.path>li::before{content:"";position:absolute;left:-7px;top:.3rem;width:12px;height:12px;border-radius:50%;background:var(--soft)}
.findings>li:last-child,.path>li:last-child{padding-bottom:0}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(17rem,100%),1fr));gap:.75rem;margin-top:.5rem}
.cards>li{border:1px solid var(--tone);border-radius:8px;padding:.625rem .875rem;min-width:0}
.values>li{background:var(--tint);border-radius:4px;padding:.125rem .375rem;margin-top:.25rem}
@media (max-width:40rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}.panel{padding:1rem}}
@media print{body{background:none;font-size:10.5pt}header,main,footer{width:auto}.panel,.cards>li,.findings>li{break-inside:avoid}*{print-color-adjust:exact}@page{margin:14mm}}`
