"""The stylesheet of the HTML page: light and dark, contrast of at least 4.5 to 1."""

STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24;
  --soft: #57606a; --rule: #d5dae0; --accent: #0b5cad; --band: #0b5cad26; --mark: #b3261e;
  --pass: #1a6b32; --fail: #b3261e; --inconclusive: #7a5200; --on: #ffffff; --bar: #7fa8d6; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1317; --card: #181d23; --ink: #e6e9ec;
  --soft: #a3adb8; --rule: #333b44; --accent: #79b8ff; --band: #79b8ff33; --mark: #ff8a80;
  --pass: #1a6b32; --fail: #b3261e; --inconclusive: #7a5200; --on: #ffffff; --bar: #4d78a8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 20px 16px 48px; }
header { border-radius: 10px; padding: 22px 26px; color: var(--on); }
header.pass { background: var(--pass); } header.fail { background: var(--fail); }
header.inconclusive { background: var(--inconclusive); }
header .word { font-size: 44px; font-weight: 750; line-height: 1.1; letter-spacing: .01em; }
header h1 { font-size: 18px; font-weight: 600; margin: 8px 0 2px; overflow-wrap: anywhere; }
header p { margin: 0; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: 16px 20px 18px; margin-top: 16px; }
h2 { font-size: 17px; margin: 0 0 10px; } h3 { font-size: 14px; margin: 0 0 4px; }
p { margin: 6px 0; } .soft { color: var(--soft); font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: 12.5px; color: var(--soft); font-weight: 600; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.figure { white-space: nowrap; }
td.wide, td.text { overflow-wrap: anywhere; } td.wide { min-width: 240px; }
.chip { display: inline-block; border-radius: 5px; padding: 1px 8px; font-size: 12px;
  font-weight: 700; color: var(--on); }
.chip.pass { background: var(--pass); } .chip.fail { background: var(--fail); }
.chip.inconclusive { background: var(--inconclusive); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; }
.tile b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr));
  gap: 18px 24px; }
ul { margin: 4px 0; padding-left: 20px; } li { overflow-wrap: anywhere; }
.warnings { border-left: 5px solid #c98700; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { margin: 6px 0 0; padding: 10px 12px; background: var(--page); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
svg text { font-family: inherit; fill: var(--soft); font-size: 11px; }
svg .label { font-size: 12px; } svg .value { fill: var(--ink); font-size: 12px; font-weight: 600; }
svg .grid { stroke: var(--rule); stroke-width: 1; fill: none; }
svg .hair { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 3; fill: none; }
svg .line { stroke: var(--accent); stroke-width: 2; fill: none; }
svg .whisker { stroke: var(--accent); stroke-width: 2.5; fill: none; }
svg .one { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 5 4; fill: none; }
svg .band { fill: var(--band); } svg .bar { fill: var(--bar); } svg .arrivals { fill: var(--bar); }
svg .dot, svg .point { fill: var(--accent); } svg .point { opacity: .75; }
svg .limit { stroke: var(--mark); stroke-width: 2; stroke-dasharray: 7 4; fill: none; }
svg .limit-text { fill: var(--mark); font-weight: 600; }
svg .failed { stroke: var(--mark); stroke-width: 2; fill: none; }
"""
