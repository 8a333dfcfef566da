// Two runs side by side, step by step; what differs is marked, what they share is one line.

import { html, nothing } from "./vendor/lit-html.js";
import { get } from "./api.js";
import { icon, paint, runPath, skeleton, standingOf, trouble } from "./parts.js";
import { brief as short, cut, dollars, span, t } from "./text.js";

const now = { a: "", b: "", told: null, error: null, only: false, at: -1 };

async function load() {
  Object.assign(now, { told: null, error: null });
  paint();
  try {
    now.told = await get(`/compare?a=${encodeURIComponent(now.a)}&b=${encodeURIComponent(now.b)}`);
  } catch (error) {
    now.error = error;
  }
  paint();
}
function next(by) {
  const found = [...document.querySelectorAll(".pair.differs")];
  if (!found.length) return;
  now.at = (now.at + by + found.length) % found.length;
  found[now.at].focus();
  found[now.at].scrollIntoView({ block: "center" });
}

export const compare = {
  title: () => t("compare.title"),
  open([a, b]) {
    if (now.a === a && now.b === b && now.told) return;
    Object.assign(now, { a, b, at: -1 });
    load();
  },
  again: () => load(),
  keys: (key) => (key === "j" || key === "k" ? (next(key === "j" ? 1 : -1), true) : false),
  view: () => html`<div class="wide"><p class="crumbs"><a href="/">${t("nav.runs")}</a></p><h1 tabindex="-1">${t("compare.title")}</h1>${body()}</div>`,
};

function body() {
  if (now.error) return trouble(now.error, load);
  if (!now.told) return skeleton(6, "tall");
  const { a, b, shared, pairs } = now.told;
  const shown = now.only ? pairs.filter((one) => one.differs.length) : pairs;
  return html`<div class="sides heads2">${[a, b].map(run)}</div>
    <div class="comparebar"><p>${icon("link")}${shared ? html`${t("compare.shared", { n: shared })} · <a href=${runPath(a.run_id, `?r=${shared - 1}`)}>${t("pane.record", { n: shared - 1 })}</a>` : t("compare.none")}</p>
      <button class="toggle" aria-pressed=${now.only ? "true" : "false"} @click=${() => ((now.only = !now.only), paint())}>${t("compare.only")}</button>
      <button class="button small" @click=${() => next(1)}>${t("compare.next")}${icon("down")}</button></div>
    ${shown.length ? html`<ol class="pairs">${shown.map((one) => pair(one, a.run_id, b.run_id))}</ol>` : html`<p class="dim end">${t("compare.same")}</p>`}`;
}
const run = (one) => html`<section class="card"><p>${standingOf(one)} <a href=${runPath(one.run_id)}><code>${one.run_id}</code></a></p><p class="num dim">${one.requests} · ${short(one.usage.input_tokens + one.usage.output_tokens)} · ${dollars(one.usage.cost_usd)} · ${span(one.elapsed_s)}</p>
  ${one.answer ? html`<p class="text">${one.answer}</p>` : nothing}</section>`;
const pair = (one, a, b) => html`<li class="pair ${one.differs.length ? "differs" : ""}" tabindex=${one.differs.length ? "-1" : nothing}><h2>${t("compare.step", { n: one.step })}
    ${one.differs.map((name) => html`<span class="chip warn">≠ ${t(`compare.differs.${name}`)}</span>`)}</h2><div class="sides">${side(one.a, one.b, a)}${side(one.b, one.a, b)}</div></li>`;

function side(mine, other, id) {
  if (!mine) return html`<div class="side dim">${t("compare.absent")}</div>`;
  const mark = (same) => (same || !other ? "" : "odd");
  return html`<div class="side"><p class=${mark(other?.model === mine.model)}><a class="num" href=${runPath(id, `?r=${mine.seq}`)}>${t("pane.record", { n: mine.seq })}</a> <span class="dim">${mine.model}</span></p>
    ${mine.reply ? html`<p class="said ${mark(other?.reply === mine.reply)}">${cut(mine.reply, 1200)}</p>` : nothing}
    ${mine.calls.map((call) => {
      const twin = other?.calls.find((one) => one.key === call.key);
      return html`<div class="made ${twin || !other ? "" : "odd"}"><code class=${mark(twin?.text === call.text)}>${cut(call.text, 600)}</code>
        <p class=${mark(twin?.verdict === call.verdict)}>${call.verdict}</p><p class="result ${mark(twin?.result === call.result)}">${cut(call.result, 600)}</p></div>`;
    })}</div>`;
}
