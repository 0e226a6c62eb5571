/** The colors from which everything is painted. */
const COLORS = `
--ink:#1b2228;--soft:#55606a;--line:#d5dbe0;--paper:#f6f7f8;--card:#fff;--good:#0a6b4b;--good-tint:#e8f5ef;--bad:#b3251c;--bad-tint:#fdeeec;--warning:#7d5200;--warning-tint:#fdf4df;--neutral:#55606a;--neutral-tint:#eef1f3;--focus:#0b5cad`
const DARK_COLORS = `
--ink:#e8ecef;--soft:#a3aeb8;--line:#39424a;--paper:#12161a;--card:#1a2026;--good:#63d2a4;--good-tint:#15302a;--bad:#ff9d92;--bad-tint:#3a201f;--warning:#f0c465;--warning-tint:#352b16;--neutral:#a3aeb8;--neutral-tint:#252d34;--focus:#7db8ff`
/** What the person's own colors make of them. */
const FORCED_COLORS = `
--ink:CanvasText;--soft:CanvasText;--line:CanvasText;--paper:Canvas;--card:Canvas;--good:CanvasText;--good-tint:Canvas;--bad:CanvasText;--bad-tint:Canvas;--warning:CanvasText;--warning-tint:Canvas;--neutral:CanvasText;--neutral-tint:Canvas;--focus:Highlight`

const MONO = "ui-monospace,'SF Mono','Cascadia Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
const SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"

/** The colors of `selector` and everything in it: light, dark, and those that a person has chosen. */
function colorsOf(selector: string): string {
  return `${selector}{color-scheme:light dark;${COLORS.trim()}}
@media screen and (prefers-color-scheme:dark){${selector}{${DARK_COLORS.trim()}}}
@media (prefers-contrast:more){${selector}{--soft:var(--ink);--line:var(--soft)}}
@media (forced-colors:active){${selector}{${FORCED_COLORS.trim()}}}`
}

const PICTURE = `
.picture{display:block;width:100%;height:auto;font-family:${SANS}}
.picture text{fill:var(--ink);font-size:13px;white-space:pre}
.picture .zone,.picture .host,.picture .value{font-family:${MONO}}
.picture .zone{font-size:14px;font-weight:600}
.picture .host{font-weight:600}
.picture .note,.picture .label{fill:var(--soft);font-size:12.5px;font-weight:400}
.picture .label{font-size:12px}
.picture .unrelated{fill:var(--soft)}
.picture .heading{font-weight:600;font-size:14px}
.picture .message{font-size:13.5px}
.picture .outcome{font-weight:600}
.picture .outcome.good{fill:var(--good)}.picture .outcome.bad{fill:var(--bad)}.picture .outcome.warning{fill:var(--warning)}.picture .outcome.neutral{fill:var(--neutral)}
.picture .differs{font-weight:700;fill:var(--bad);text-decoration:underline;text-decoration-thickness:2px;text-underline-offset:3px}
.picture .expected{fill:var(--neutral-tint);stroke:none}
.picture .card{fill:var(--card);stroke:var(--line)}
.picture .card.bad{stroke:var(--bad)}.picture .card.good{stroke:var(--good)}.picture .card.warning{stroke:var(--warning);stroke-dasharray:5 3}
.picture .aside{fill:none;stroke:var(--line);stroke-dasharray:4 3}
.picture .callout.bad{fill:var(--bad-tint)}.picture .callout.warning{fill:var(--warning-tint)}.picture .callout.neutral{fill:var(--neutral-tint)}
.picture .line{fill:none;stroke:var(--soft);stroke-width:2}
.picture .broken{stroke:var(--bad);stroke-dasharray:3 5}
.picture .divider{stroke:var(--line);stroke-dasharray:2 4}
.picture .stop{fill:var(--soft);stroke:var(--soft);stroke-width:2}
.picture .not-asked{fill:var(--card);stroke-dasharray:3 2.5}
.symbol circle{fill:var(--neutral)}
.symbol.good circle{fill:var(--good)}.symbol.bad circle{fill:var(--bad)}.symbol.warning circle{fill:var(--warning)}
.symbol path{fill:none;stroke:var(--card);stroke-width:2.2;stroke-linecap:round;stroke-linejoin:round}`

/** The style of a picture on its own. */
export const PICTURE_STYLE = `${colorsOf('svg')}${PICTURE}`

/** The style of the whole document. */
export const STYLE = `${colorsOf(':root')}
${PICTURE.trim()}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.55 ${SANS};overflow-wrap:anywhere}
header,main,footer{width:min(62rem,100% - 2rem);margin-inline:auto}
header{padding-block:1.25rem .75rem;display:flex;flex-wrap:wrap;gap:.25rem 1rem;justify-content:space-between;color:var(--soft);font-size:.875rem}
header p{margin:0}
header strong{color:var(--ink)}
footer{padding-block:.5rem 2.5rem;color:var(--soft);font-size:.875rem}
h1,h2,h3{line-height:1.25;margin:0;text-wrap:balance}
h1{font-size:clamp(1.375rem,1.1rem + 1.4vw,1.875rem);letter-spacing:-.01em}
h2{font-size:1.125rem;margin-bottom:.875rem}
h3{font-size:1rem;font-weight:600}
p{margin:.5rem 0}
.panel{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.5rem;margin-block:0 1.25rem}
.result{border-left:6px solid var(--neutral)}
.result.good{border-left-color:var(--good)}.result.bad{border-left-color:var(--bad)}.result.warning{border-left-color:var(--warning)}
.status{display:flex;align-items:center;gap:.5rem;margin:0 0 .5rem;font-weight:600}
.good>.status{color:var(--good)}.bad>.status{color:var(--bad)}.warning>.status{color:var(--warning)}
.icon{flex:none;width:1.375rem;height:1.375rem}
.cause{font-size:1.0625rem;max-width:48rem;margin:.625rem 0 0}
.result h2{margin:1.5rem 0 .25rem;font-size:1rem}
.todo{max-width:48rem;margin:0}
dl.record,dl.facts,dl.evidence{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.375rem 1.25rem;margin:.875rem 0 0}
dt{color:var(--soft)}
dd{margin:0;min-width:0}
dl.record{background:var(--neutral-tint);border-radius:8px;padding:.875rem 1rem}
code,.compare dd{font-family:${MONO};font-size:.9375em}
p code{background:var(--neutral-tint);border-radius:4px;padding:.0625em .3125em;-webkit-box-decoration-break:clone;box-decoration-break:clone}
dl.record code,.command code{user-select:all}
.compare{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.25rem 1.25rem;margin:.875rem 0 0;padding:.75rem 1rem;border:1px solid var(--line);border-radius:8px}
.compare dd{white-space:pre-wrap}
ins,del,mark{font-weight:700;text-decoration:underline 2px;text-underline-offset:3px;background:none}
ins{color:var(--good)}
del,mark{color:var(--bad)}
.picture.narrow{display:none}
ol.findings{list-style:none;margin:0;padding:0}
.findings>li{padding-block:1.125rem;border-top:1px solid var(--line)}
.findings>li:first-child{border-top:0;padding-top:0}
.findings>li:last-child{padding-bottom:0}
.findings .status{align-items:flex-start;margin:0}
.findings .body{margin-left:1.875rem}
.meta,.evidence{font-size:.875rem}
.meta{color:var(--soft)}
details>summary{cursor:pointer;color:var(--soft);font-size:.875rem;padding-block:.25rem}
.scroll{overflow-x:auto;margin-bottom:1.25rem;border:1px solid var(--line);border-radius:8px}
.scroll:last-child{margin-bottom:0}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.875rem;overflow-wrap:normal}
caption{text-align:left;font-weight:600;padding:.75rem .75rem .5rem;font-size:.9375rem}
th,td{text-align:left;vertical-align:top;padding:.5rem .75rem;border-top:1px solid var(--line)}
thead th{color:var(--soft);font-weight:600;white-space:nowrap}
tbody th{font-weight:400}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.values{min-width:17rem;overflow-wrap:anywhere}
td.values ul{list-style:none;margin:0;padding:0}
.answer{font-weight:600;white-space:nowrap}
.answer.good{color:var(--good)}.answer.bad{color:var(--bad)}.answer.neutral{color:var(--neutral)}
@media screen and (max-width:56rem){.picture.wide{display:none}.picture.narrow{display:block;max-width:30rem}}
@media (max-width:40rem){header,main,footer{width:calc(100% - 1.25rem)}.panel{padding:1rem}dl.facts,dl.evidence{grid-template-columns:1fr;gap:0}dl.facts dd,dl.evidence dd{margin-bottom:.5rem}dl.record,.compare{grid-template-columns:1fr;gap:0;padding:.75rem}dl.record dd,.compare dd{margin-bottom:.5rem}.findings .body{margin-left:0}}
@media print{body{background:none;font-size:10.5pt}header,main,footer{width:auto}.panel{border-color:#bbb;padding:1rem;break-inside:auto}.picture,.result,.findings>li,tr{break-inside:avoid}h2{break-after:avoid}.scroll{overflow:visible;border:0}table{font-size:8.5pt}th,td{padding:.25rem .375rem}td.values{min-width:0}@page{margin:14mm}*{print-color-adjust:exact}}`
