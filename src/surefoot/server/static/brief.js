// A row on one line that leads to its place in the timeline.

import { html } from "./vendor/lit-html.js";
import { icon, KINDS, runPath, took } from "./parts.js";
import { cut, t } from "./text.js";

export const brief = (run, row) => html`<li class="k-${row.kind} ${row.style}"><a href=${runPath(run, `?r=${row.seq}`)}>${icon(KINDS[row.kind] ?? "dot")}<span class="kind">${t(`kind.${row.kind}`)}</span
  ><span class="text">${row.parts.map((part) => html`<span class=${part.role}>${cut(part.text, 300)}</span>`)}</span><span class="took num">${took(row.took_s)}</span></a></li>`;
