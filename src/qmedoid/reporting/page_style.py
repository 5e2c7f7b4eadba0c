"""The style of the page: light and dark, narrow and wide, screen and paper, without fonts or images from elsewhere."""

STYLE = """\
:root {
  color-scheme: light dark;
  --ground: #fdfdfc; --text: #1b1f24; --muted: #5b6470; --line: #d5d9de; --soft: #f1f4f7;
  --accent: #005a8c; --found: #eef6fb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --text: #e3e6e9; --muted: #9aa4af; --line: #373d44; --soft: #1e2328;
    --accent: #6cb8e6; --found: #17252f;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1rem; max-width: 100rem; background: var(--ground); color: var(--text);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
p, li { max-width: 46rem; }
a { color: var(--accent); }
nav { font-size: .875rem; line-height: 1.4; margin: 2rem 0; }
nav p { margin: 0 0 .25rem; font-weight: 600; }
nav ol, nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .3rem 0; }
nav ul { padding-left: .8rem; border-left: 1px solid var(--line); }
nav a { text-decoration: none; }
nav a:hover, nav a:focus { text-decoration: underline; }
.findings { background: var(--found); border: 1px solid var(--line); border-left: .3rem solid var(--accent);
  border-radius: .3rem; padding: .9rem 1.1rem; margin: 1.5rem 0; }
.findings h2 { margin: 0 0 .5rem; padding: 0; border: 0; }
.findings ul { margin: 0; padding-left: 1.2rem; }
.findings li + li { margin-top: .4rem; }
figure { margin: 1.75rem 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; max-width: 60rem; }
.note { color: var(--muted); font-size: .875rem; margin: .5rem 0 0; }
.box { overflow-x: auto; max-width: 100%; width: fit-content; border: 1px solid var(--line); border-radius: .3rem; }
.drawn { background: #fff; padding: .5rem; }
.drawn img { display: block; height: auto; max-width: max(100%, 42rem); }
table { border-collapse: separate; border-spacing: 0; font-size: .875rem; line-height: 1.35; overflow-wrap: normal; }
th, td { padding: .35rem .7rem; text-align: left; vertical-align: baseline; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--soft); vertical-align: bottom; font-weight: 600; }
thead th.group { text-align: center; border-left: 1px solid var(--line); }
tbody th { font-weight: 500; background: var(--ground); }
tbody th.again { color: var(--muted); font-weight: 400; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.error { display: inline-block; color: var(--muted); font-size: .8em; text-align: left; white-space: pre; }
.box tr:first-child > th:first-child, .box tbody th:first-child {
  position: sticky; left: 0; z-index: 1; border-right: 1px solid var(--line); min-width: 6rem; max-width: 40vw; }
tbody tr:hover > * { background: var(--soft); }
.provenance table { font-size: .8rem; color: var(--muted); }
.provenance th, .provenance td { padding: .2rem .7rem .2rem 0;
  vertical-align: top; border: 0; overflow-wrap: anywhere; }
.provenance th { white-space: nowrap; }
@media (min-width: 75rem) {
  body { display: grid; grid-template: auto 1fr / 15rem minmax(0, 1fr); gap: 0 2.5rem; padding: 2rem; }
  header, main { grid-column: 2; }
  nav { grid-area: 1 / 1 / span 2; position: sticky; top: 2rem; align-self: start; margin: 0;
    max-height: calc(100vh - 4rem); overflow-y: auto; }
  .box tr:first-child > th:first-child, .box tbody th:first-child { min-width: 9rem; }
}
@media print {
  :root { --ground: #fff; --text: #000; --muted: #444; --line: #bbb; --soft: #f2f2f2; --accent: #000; --found: #fff; }
  body { display: block; padding: 0; max-width: none; font-size: 10pt; }
  nav { display: none; }
  .box { overflow: visible; width: auto; border: 0; }
  .drawn img { max-width: 100%; }
  .box th:first-child { position: static; max-width: none; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .35rem; }
  figure, tr { break-inside: avoid; }
  h2, figcaption { break-after: avoid; }
}
"""
