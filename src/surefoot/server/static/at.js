// The run as it stood: a slider over its records, with the rows, figures, plan and questions as of that record.

import { html, nothing } from "./vendor/lit-html.js";
import { get } from "./api.js";
import { leaveRun, openRun } from "./live.js";
import { brief } from "./brief.js";
import { go, icon, lines, notice, paint, runPath, skeleton, state } from "./parts.js";
import { figures, forkAt, runKeys, whole } from "./run.js";
import { t } from "./text.js";

const BEFORE = 40;
const now = { live: null, at: 0, state: null, rows: [], plan: null, error: null };
let asking = null;

async function load() {
  asking?.abort();
  asking = new AbortController();
  const { live, at } = now;
  const { signal } = asking;
  const since = Math.max(0, at - BEFORE);
  try {
    const [seen, told] = await Promise.all([get(`${live.path}/state?at=${at}`, signal), at ? get(`${live.path}/rows?since=${since}&limit=${at - since}`, signal) : { rows: [] }]);
    const plan = seen.plan ? await get(`${live.path}/plan?at=${at}`, signal).catch(() => null) : null;
    if (!signal.aborted) Object.assign(now, { state: seen, rows: told.rows, plan, error: null });
  } catch (error) {
    if (signal.aborted) return;
    now.error = error;
  }
  paint();
}
let kept = 0;
function move(to) {
  now.at = Math.max(0, Math.min(to, now.live.total));
  clearTimeout(kept);
  kept = setTimeout(() => history.replaceState({}, "", runPath(now.live.id, `/at/${now.at}`)), 120);
  load();
  paint();
}
/** Where the step before or after begins: a record whose row belongs to another reply. */
async function step(by) {
  const { live, at } = now;
  const since = by > 0 ? at : Math.max(0, at - 500);
  const { rows } = await get(`${live.path}/rows?since=${since}&limit=500`).catch(() => ({ rows: [] }));
  const mine = now.state?.step ?? 0;
  const next = by > 0 ? rows.find((row) => row.step > mine)?.seq : rows.findLast((row, n) => row.seq < at - 1 && row.step && rows[n - 1]?.step !== row.step)?.seq;
  move(next === undefined ? (by > 0 ? live.total : since) : next + 1);
}

export const at = {
  title: () => t("at.title", { n: now.at, total: now.live?.total ?? 0 }),
  open([id, place], _, { isNew }) {
    Object.assign(now, { live: openRun(id), at: Number(place) });
    if (isNew) Object.assign(now, { state: null, rows: [], plan: null, error: null });
    now.live.ready.then(() => move(now.at));
  },
  close() {
    asking?.abort();
    clearTimeout(kept);
    if (!location.pathname.startsWith(runPath(now.live.id))) leaveRun();
  },
  again: () => now.live.load().then(load),
  keys(key, event) {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[key];
    if (by) return (move(now.at + by), true);
    if (key === "Home" || key === "End") return (move(key === "Home" ? 0 : now.live.total), true);
    if (key === "PageUp" || key === "PageDown") return (step(key === "PageDown" ? 1 : -1), true);
    if (key === "f") return (forkAt(now.live, now.at), true);
    return event.target.matches?.("button") && key === " " ? false : runKeys(now.live, key);
  },
  view: () => whole(now.live, "at", body),
};

function body() {
  const { live, state: seen } = now;
  const told = t("at.title", { n: now.at, total: live.total });
  return html`<div class="slider"><button class="button small" ?disabled=${!now.at} @click=${() => move(now.at - 1)} aria-label=${t("at.back")}>−</button>
      <input type="range" min="0" max=${live.total} .value=${String(now.at)} aria-label=${t("at.slider")} aria-valuetext=${told} @input=${(e) => move(Number(e.target.value))}>
      <button class="button small" ?disabled=${now.at >= live.total} @click=${() => move(now.at + 1)} aria-label=${t("at.on")}>+</button>
      <output class="num">${told}${seen?.step ? ` · ${t("at.step", { n: seen.step })}` : ""}</output>
      <a class="button small" href=${runPath(live.id, `?r=${Math.max(0, now.at - 1)}`)}>${t("at.timeline")}</a>
      <button class="button small main" ?disabled=${!now.at} @click=${() => forkAt(live, now.at)}>${icon("fork")}${t("at.fork")}</button></div>
    ${now.error ? notice("bad", now.error.message, now.error.detail) : nothing}
    ${seen ? html`<div class="split"><section class="main"><h2>${t("at.rows")}</h2>${now.rows.length ? html`<ol class="brief long">${now.rows.toReversed().map((row) => brief(live.id, row))}</ol>`
      : html`<p class="dim">${t("at.none")}</p>`}</section>
      <aside class="rail" aria-label=${t("fact.figures")}><p class="now">${state(seen.status, "big")}</p>${figures(live, seen)}
        ${now.plan ? html`<h3>${t("tab.plan")} v${now.plan.version}</h3><ul class="opens">${now.plan.steps.map((one) => html`<li><a href=${runPath(live.id, `/plan?version=${now.plan.version}`)}><span>${one.title}</span>${state(one.status)}</a></li>`)}</ul>` : nothing}
        ${seen.waiting.length ? html`<h3>${t("at.open")}</h3>${seen.waiting.map((one) => lines(one.lines))}` : nothing}</aside></div>` : skeleton(8)}`;
}
