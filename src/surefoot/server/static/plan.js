// The plan as a picture: steps and what they wait for, two versions side by side, the rows of the step in focus.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { get } from "./api.js";
import { brief } from "./brief.js";
import { leaveRun, openRun } from "./live.js";
import { chip, empty, go, icon, look, paint, runPath, sign, skeleton, state, trouble } from "./parts.js";
import { runKeys, whole } from "./run.js";
import { cut, t } from "./text.js";

const [WIDE, HIGH, FAR, NEAR, EDGE] = [208, 68, 52, 20, 12];
const now = { live: null, version: 0, beside: 0, plan: null, other: null, error: null, step: "", rows: [] };

async function load() {
  const { live, version, beside } = now;
  const find = (one) => get(`${live.path}/plan${one ? `?version=${one}` : ""}`);
  try {
    const [plan, other] = await Promise.all([find(version), beside ? find(beside) : null]);
    if (live === now.live) Object.assign(now, { plan, other, error: null });
  } catch (error) {
    now.error = error;
  }
  paint();
}
async function rowsOf(step) {
  const held = [];
  for (let since = 0, tries = 0; since !== null && tries < 4 && held.length < 60; tries += 1) {
    const told = await get(`${now.live.path}/rows?since=${since}&limit=500`);
    held.push(...told.rows.filter((row) => row.step_id === step));
    since = told.next;
  }
  if (now.step === step) now.rows = held.slice(0, 60);
  paint();
}
function focus(step) {
  Object.assign(now, { step: now.step === step ? "" : step, rows: [] });
  if (now.step) rowsOf(step).catch(() => {});
  paint();
}
let due = 0;
const watch = () => {
  clearTimeout(due);
  due = setTimeout(load, 400);
};

export const plan = {
  title: () => t("tab.plan"),
  open([id], asked, { isNew }) {
    Object.assign(now, { live: openRun(id), version: Number(asked.get("version") ?? 0), beside: Number(asked.get("beside") ?? 0) });
    if (isNew) Object.assign(now, { plan: null, other: null, error: null, step: "" });
    now.live.watchers.add(watch);
    now.live.ready.then(load);
  },
  close() {
    clearTimeout(due);
    now.live.watchers.delete(watch);
    if (!location.pathname.startsWith(runPath(now.live.id))) leaveRun();
  },
  again: () => now.live.load().then(load),
  keys(key, event) {
    if (key === "Escape" && now.step) return (focus(now.step), true);
    const from = event.target.closest?.("[data-step]")?.dataset.step;
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
    if (!from || !way) return runKeys(now.live, key);
    const at = now.plan.steps.find((one) => one.id === from);
    const score = (one) => {
      const [x, y] = [one.column - at.column, one.row - at.row];
      const along = x * way[0] + y * way[1];
      return along > 0 ? along * 10 + Math.abs(way[0] ? y : x) : Infinity;
    };
    const next = now.plan.steps.toSorted((a, b) => score(a) - score(b))[0];
    if (score(next) < Infinity) document.querySelector(`[data-step="${CSS.escape(next.id)}"]`)?.focus();
    return true;
  },
  view: () => whole(now.live, "plan", body),
};

const turn = (name, value) => {
  const asked = new URLSearchParams({ version: now.version || now.plan.version, ...(now.beside && { beside: now.beside }), [name]: value });
  if (!Number(value)) asked.delete(name);
  go({ to: runPath(now.live.id, `/plan?${asked}`), how: "replace" });
};
const chooser = (name, label, none) => html`<label class="field"><span>${label}</span><select @change=${(e) => turn(name, e.target.value)}>
  ${none ? html`<option value="0" ?selected=${!now[name]}>${none}</option>` : nothing}
  ${now.plan.versions.map((one) => html`<option value=${one} ?selected=${(now[name] || (none ? 0 : now.plan.version)) === one}>${one}</option>`)}</select></label>`;

function body() {
  if (now.error?.name === "no_plan") return empty("plan", t("plan.none"), t("plan.none.text"));
  if (now.error) return trouble(now.error, load);
  if (!now.plan) return skeleton(5, "tall");
  const { plan: shown, other } = now;
  const [left, right] = other && other.version < shown.version ? [other, shown] : [shown, other];
  const edit = right && right.edits.find((one) => one.version === right.version);
  const step = shown.steps.find((one) => one.id === now.step);
  return html`<div class="planbar"><p>${shown.description}</p>${shown.versions.length > 1 ? html`${chooser("version", t("plan.version"))}${chooser("beside", t("plan.beside"), t("plan.alone"))}` : nothing}</div>
    <div class="plans ${right ? "two" : ""} ${step ? "opened" : ""}">${figure(left, right && edit)}${right ? figure(right, edit) : nothing}
      ${step ? html`<aside class="pane" aria-label=${step.title}>${detail(step)}</aside>` : nothing}</div>
    ${shown.edits.length ? html`<section class="card edits"><h2>${t("plan.edits")}</h2><ul>${shown.edits.map(told)}</ul></section>` : nothing}`;
}
const told = (one) => html`<li><p><b>v${one.version}</b> ${chip(one.strategy)} <span>${one.reason}</span> <a href=${runPath(now.live.id, `?r=${one.at}`)}>${t("pane.record", { n: one.at })}</a></p>
  <p class="marks">${["added", "removed", "changed"].map((kind) => one[kind].map((id) => html`<span class=${kind}>${icon(MARKS[kind])}${t(`plan.${kind}`)} <code>${id}</code></span>`))}</p></li>`;
const MARKS = { added: "plus", removed: "minus", changed: "tilde" };

function figure(shown, edit) {
  const columns = Math.max(...shown.steps.map((one) => one.column)) + 1;
  const rows = Math.max(...shown.steps.map((one) => one.row)) + 1;
  const [width, height] = [columns * (WIDE + FAR) - FAR + 2 * EDGE, rows * (HIGH + NEAR) - NEAR + 2 * EDGE];
  const places = new Map(shown.steps.map((one) => [one.id, [EDGE + one.column * (WIDE + FAR), EDGE + one.row * (HIGH + NEAR)]]));
  return html`<figure class="plan"><figcaption>${t("plan.picture", { n: shown.version })} ${chip(shown.phase)}</figcaption><div class="canvas" tabindex="-1">
    <svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="group" aria-label=${t("plan.picture", { n: shown.version })}>
    ${shown.edges.map(([from, to]) => places.has(from) && places.has(to) ? line(places.get(from), places.get(to), shown, from, to) : nothing)}
    ${shown.steps.map((one) => box(one, places.get(one.id), edit))}</svg></div></figure>`;
}
function line([x, y], [u, v], shown, from, to) {
  const out = shown.steps.some((one) => [from, to].includes(one.id) && ["superseded", "skipped"].includes(one.status));
  const [a, b, c, d] = [x + WIDE, y + HIGH / 2, u - 5, v + HIGH / 2];
  return svg`<path class="edge ${out ? "out" : ""}" d="M${a} ${b}C${a + FAR / 2} ${b} ${c - FAR / 2} ${d} ${c} ${d}M${c - 4} ${d - 4}l5 4-5 4"></path>`;
}
const room = (text, most) => {
  let left = most;
  const end = [...text].findIndex((char) => (left -= char > "\u2e7f" ? 2 : /[A-ZmwMW@%]/.test(char) ? 1.3 : 1) < 0);
  return end < 0 ? text : `${[...text].slice(0, end).join("")}…`;
};
function box(one, [x, y], edit) {
  const [name, tone] = look(one.status);
  const kind = edit && Object.keys(MARKS).find((key) => edit[key].includes(one.id));
  const word = `${t(`status.${one.status}`)}${one.attempts > 1 ? ` · ${t("plan.attempts", { n: one.attempts })}` : ""}`;
  return svg`<g class="step ${tone} s-${one.status} ${now.step === one.id ? "chosen" : ""}" transform="translate(${x} ${y})" role="button" tabindex="0" data-step=${one.id}
    aria-pressed=${now.step === one.id ? "true" : "false"} aria-label="${one.title}: ${word}${kind ? `, ${t(`plan.${kind}`)}` : ""}" @click=${() => focus(one.id)}
    @keydown=${(e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), focus(one.id))}><title>${cut(one.title, 300)}</title>
    <rect width=${WIDE} height=${HIGH} rx="8"></rect><text class="name" x="12" y="22">${room(one.title, 27)}</text>
    <text class="actor" x="12" y="39">${room(one.tools[0] ?? one.kind, 26)}</text><g transform="translate(10 45)">${sign(name)}</g><text class="word" x="30" y="57">${room(word, 25)}</text>
    ${kind ? svg`<g class="mark ${kind}" transform="translate(${WIDE - 24} 8)"><circle cx="8" cy="8" r="9"></circle>${sign(MARKS[kind])}</g>` : nothing}</g>`;
}

function detail(one) {
  const fact = (name, text) => (text ? html`<h3>${t(`plan.${name}`)}</h3><p class="line ${name === "error" ? "bad" : ""}">${text}</p>` : nothing);
  return html`<header><h2>${one.title}</h2><button class="plain" aria-label=${t("close")} @click=${() => focus(one.id)}>${icon("cross")}</button></header>
    <p class="under">${state(one.status)}<span class="dim">${t("plan.attempts", { n: one.attempts })}</span>${one.tools.map((name) => chip(name))}</p>
    ${one.depends_on.length ? html`<p class="dim">${t("plan.after")} ${one.depends_on.map((id) => html`<code>${id}</code> `)}</p>` : nothing}
    ${fact("criteria", one.criteria)}${fact("error", one.error)}${fact("result", one.result)}
    ${now.rows.length ? html`<h3>${t("plan.rows")}</h3><ol class="brief">${now.rows.map((row) => brief(now.live.id, row))}</ol>` : nothing}`;
}
