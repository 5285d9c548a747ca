/** The looks of `/docs`: one style sheet, for light and dark, for a wide screen and a phone. */
export const DOCS_STYLE = `
:root {
  color-scheme: light dark;
  --page: light-dark(#fff, #101216);
  --side: light-dark(#f7f8fa, #15181d);
  --panel: light-dark(#f4f5f8, #181c22);
  --line: light-dark(#e3e6eb, #2a2f38);
  --text: light-dark(#1b1f27, #e4e7ec);
  --soft: light-dark(#5b6472, #98a1b0);
  --accent: light-dark(#2f5bd7, #8aa9ff);
  --tint: light-dark(#eaf0ff, #1e2740);
  --get: light-dark(#0b7a4b, #5fd0a0);
  --post: light-dark(#2f5bd7, #8aa9ff);
  --patch: light-dark(#96600a, #e8b45c);
  --delete: light-dark(#b3261e, #ff8f86);
  --key: light-dark(#8a3a9c, #d7a3e6);
  --string: light-dark(#0b7a4b, #7fd3ac);
  --number: light-dark(#a2510b, #efb27a);
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
* { box-sizing: border-box; scrollbar-width: thin; scrollbar-color: var(--line) transparent; }
[hidden] { display: none !important; }
html { scroll-padding-top: 1.5rem; scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.6 system-ui, sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font-family: var(--mono); font-size: .87em; }
p code, td code, .text code { background: var(--panel); border-radius: 4px; padding: .1em .35em; overflow-wrap: anywhere; }
button { font: inherit; color: inherit; background: none; border: 0; cursor: pointer; }
.soft { color: var(--soft); }
.error { padding: 3rem 2rem; }

#shell { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
#side { position: sticky; top: 0; height: 100vh; overflow-y: auto; background: var(--side); border-right: 1px solid var(--line); padding: 1.5rem 1rem 3rem; }
#side h1 { font-size: 1.1rem; margin: 0 .5rem .2rem; letter-spacing: -.01em; }
#side .links { margin: 0 .5rem 1rem; font-size: .85rem; }
#filter { width: 100%; font: inherit; font-size: .9rem; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: 8px; padding: .4rem .7rem; }
#menu { display: none; }
nav h2 { font-size: .74rem; font-weight: 600; color: var(--soft); margin: 1.3rem .5rem .3rem; }
nav a { display: flex; gap: .6rem; align-items: baseline; padding: .22rem .5rem; border-radius: 6px; color: var(--text); font-size: .88rem; line-height: 1.4; }
nav a:hover { background: var(--panel); text-decoration: none; }
nav a.here { background: var(--tint); color: var(--accent); }
nav .verb { order: 2; margin-left: auto; font-size: .66rem; }

main { padding: 2.5rem 3rem 8rem; max-width: 88rem; }
main h1 { font-size: 2rem; letter-spacing: -.025em; line-height: 1.2; margin: 0 0 1rem; }
.intro { max-width: 46rem; }
.tag { margin-top: 4.5rem; }
.tag > h2 { font-size: 1.5rem; letter-spacing: -.02em; margin: 0; }
.tag > p { margin: .2rem 0 0; color: var(--soft); }
.operation { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem 3rem; padding: 2.2rem 0; border-bottom: 1px solid var(--line); }
.tag > .operation:last-child { border-bottom: 0; }
.operation h3 { font-size: 1.15rem; letter-spacing: -.01em; margin: 0 0 .5rem; }
.operation h3 a { color: inherit; }
.operation h4, .auth h4 { font-size: .85rem; font-weight: 600; margin: 1.8rem 0 .2rem; padding-bottom: .35rem; border-bottom: 1px solid var(--line); }
.address { font-family: var(--mono); font-size: .87rem; overflow-wrap: anywhere; }
.verb { font: 700 .72rem/1 var(--mono); text-transform: uppercase; }
.address .verb { margin-right: .6rem; font-size: .8rem; }
.get { color: var(--get); } .post { color: var(--post); } .patch, .put { color: var(--patch); } .delete { color: var(--delete); }
.prose p { margin: .7rem 0; }

.field { padding: .55rem 0; border-bottom: 1px solid var(--line); }
.field:last-child { border-bottom: 0; }
.field > .name { display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; }
.name b { font: 600 .86rem var(--mono); overflow-wrap: anywhere; }
.kind { font-size: .82rem; color: var(--soft); overflow-wrap: anywhere; }
.must { font-size: .75rem; color: var(--delete); }
/* What an answer always has need not be marked. */
.reply .must { display: none; }
.field .text { font-size: .9rem; }
.values { font-size: .84rem; color: var(--soft); }
.values code { margin-right: .15rem; }
details > summary { cursor: pointer; list-style: none; color: var(--accent); font-size: .82rem; padding: .15rem 0; width: fit-content; }
details > summary::-webkit-details-marker { display: none; }
details > summary::before { content: "+"; font-family: var(--mono); display: inline-block; width: 1.1em; }
details[open] > summary::before { content: "−"; }
details > .inside { border-left: 2px solid var(--line); padding-left: .9rem; margin: .2rem 0 .3rem .2rem; }
.status { display: grid; grid-template-columns: 2.6rem minmax(0, 1fr); gap: .6rem; padding: .4rem 0; font-size: .9rem; }
.status b { font: 600 .84rem/1.7 var(--mono); }
.ok { color: var(--get); } .bad { color: var(--delete); }

.samples { position: sticky; top: 1.5rem; align-self: start; display: grid; gap: 1rem; min-width: 0; }
.sample { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; min-width: 0; }
.sample > header { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem; padding: .35rem .5rem .35rem .9rem; border-bottom: 1px solid var(--line); font-size: .8rem; }
.sample > header b { font-weight: 600; margin-right: auto; }
.sample button { padding: .2rem .55rem; border-radius: 6px; color: var(--soft); font-size: .8rem; }
.sample button:hover { background: var(--line); color: var(--text); }
.tabs { display: flex; flex-wrap: wrap; gap: .2rem; padding: .4rem .5rem 0; }
.tabs button[aria-pressed=true] { background: var(--tint); color: var(--accent); }
pre { margin: 0; padding: .8rem .9rem; overflow: auto; max-height: 30rem; line-height: 1.55; tab-size: 2; font-size: .8rem; }
.k { color: var(--key); } .s { color: var(--string); } .n { color: var(--number); }

@media (max-width: 75rem) {
  .operation { grid-template-columns: minmax(0, 1fr); }
  .samples { position: static; }
}
@media (max-width: 50rem) {
  #shell { display: block; }
  #side { position: sticky; z-index: 1; height: auto; max-height: 100vh; padding: .7rem 1rem; border-right: 0; border-bottom: 1px solid var(--line); }
  #side .top { display: flex; align-items: baseline; }
  #side h1 { margin: 0 auto 0 0; }
  #side .links { margin: 0 1rem 0 0; }
  #menu { display: block; padding: .1rem .7rem; border: 1px solid var(--line); border-radius: 8px; font-size: .85rem; }
  #side:not(.open) #filter, #side:not(.open) nav { display: none; }
  #side.open #filter { margin-top: .8rem; }
  main { padding: 1.5rem 1rem 5rem; }
  main h1 { font-size: 1.6rem; }
  .tag { margin-top: 3rem; }
  html { scroll-padding-top: 4rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
`;
