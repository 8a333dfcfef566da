// The plan as a picture: steps and what they wait for, two versions side by side, the rows of the step in focus.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { get } from "./api.js";
import { openRun } from "./live.js";
import { chip, empty, go, icon, loading, look, paint, PATHS, recordLink, rowLink, runPath, shut, skeleton, state, trouble } from "./parts.js";
import { runKeys, whole } from "./run.js";
import { cut, t } from "./text.js";

const [WIDE, HIGH, FAR, NEAR, EDGE] = [216, 84, 48, 20, 12];
const MARKS = { added: "plus", removed: "minus", changed: "tilde" };
const now = {};
const load = loading(now, async () => {
  const find = (version) => get(`${now.live.path}/plan${version ? `?version=${version}` : ""}`);
  const [plan, other] = await Promise.all([find(now.version), now.beside ? find(now.beside) : null]);
  return { plan, other };
});
async function focus(step) {
  Object.assign(now, { step: now.step === step ? "" : step, rows: [] });
  paint();
  const held = [];
  for (let since = 0; now.step === step && since !== null && since < 2000 && held.length < 60;) {
    const told = await get(`${now.live.path}/rows?since=${since}&limit=500`);
    held.push(...told.rows.filter((row) => row.step_id === step));
    since = told.next;
  }
  if (now.step === step) now.rows = held.slice(0, 60);
  paint();
}
let due = 0;

export const plan = {
  title: () => t("tab.plan"),
  open([id], asked, isNew) {
    Object.assign(now, { live: openRun(id), version: Number(asked.get("version")), beside: Number(asked.get("beside")) });
    if (isNew) Object.assign(now, { plan: null, other: null, error: null, step: "", rows: [] });
    now.live.ready.then(load);
  },
  changed() {
    clearTimeout(due);
    due = setTimeout(load, 400);
  },
  close: () => clearTimeout(due),
  again: () => now.live.load().then(load),
  keys(key, { target }) {
    if (key === "Escape" && now.step) return (focus(now.step), true);
    const from = target.closest("[data-step]")?.dataset.step;
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
    if (!from || !way) return runKeys(now.live, key);
    const at = now.plan.steps.find((one) => one.id === from);
    const far = (one) => {
      const [x, y] = [one.column - at.column, one.row - at.row];
      const along = x * way[0] + y * way[1];
      return along > 0 ? along * 10 + Math.abs(way[0] ? y : x) : Infinity;
    };
    const next = now.plan.steps.reduce((best, one) => (far(one) < far(best) ? one : best));
    if (far(next) < Infinity) document.querySelector(`[data-step="${CSS.escape(next.id)}"]`).focus();
    return true;
  },
  view: () => whole(now.live, "plan", body),
};

function turn(name, value) {
  const asked = { version: now.version || now.plan.version, beside: now.beside, [name]: Number(value) };
  go(runPath(now.live.id, `/plan?version=${asked.version}&beside=${asked.beside}`), "replace");
}
const chooser = (name, shown, none) => html`<label class="field"><span>${t(`plan.${name}`)}</span><select @change=${(e) => turn(name, e.target.value)}>
  ${none ? html`<option value="0">${none}</option>` : nothing}${now.plan.versions.map((one) => html`<option ?selected=${shown === one}>${one}</option>`)}</select></label>`;

function body() {
  const { plan: shown, other, error } = now;
  if (error) return error.name === "no_plan" ? empty("plan", "plan.none") : trouble(error, load);
  if (!shown) return skeleton(5, true);
  const [left, right] = other ? [shown, other].sort((a, b) => a.version - b.version) : [shown];
  const edit = right?.edits.find((one) => one.version === right.version);
  const step = shown.steps.find((one) => one.id === now.step);
  return html`<div class="planbar"><p>${shown.description}</p>${shown.versions.length > 1 ? html`${chooser("version", shown.version)}${chooser("beside", now.beside, t("plan.alone"))}` : nothing}</div>
    <div class="plans ${right ? "two" : ""} ${step ? "stepped" : ""}">${[left, right].filter(Boolean).map((one) => figure(one, edit))}
      ${step ? html`<aside class="pane" aria-label=${step.title}>${detail(step)}</aside>` : nothing}</div>
    ${shown.edits.length ? html`<section class="card"><h2>${t("plan.edits")}</h2><ul>${shown.edits.map(told)}</ul></section>` : nothing}`;
}
const told = (one) => html`<li class="edit"><p><b>v${one.version}</b> ${chip(one.strategy)} ${one.reason} ${recordLink(now.live.id, one.at)}</p>
  <p>${Object.keys(MARKS).map((kind) => one[kind].map((id) => html`<span class=${kind}>${icon(MARKS[kind])}${t(`plan.${kind}`)} <code>${id}</code></span>`))}</p></li>`;

function figure(shown, edit) {
  const most = (name) => Math.max(...shown.steps.map((one) => one[name])) + 1;
  const [width, height] = [most("column") * (WIDE + FAR) - FAR + 2 * EDGE, most("row") * (HIGH + NEAR) - NEAR + 2 * EDGE];
  const places = new Map(shown.steps.map((one) => [one.id, { x: EDGE + one.column * (WIDE + FAR), y: EDGE + one.row * (HIGH + NEAR), out: ["superseded", "skipped"].includes(one.status) }]));
  const title = t("plan.picture", { n: shown.version });
  return html`<figure class="card"><figcaption>${title} ${chip(shown.phase)}</figcaption><div class="canvas"><svg width=${width} height=${height} role="group" aria-label=${title}>
    ${shown.edges.filter((edge) => edge.every((id) => places.has(id))).map(([from, to]) => line(places.get(from), places.get(to)))}
    ${shown.steps.map((one) => box(one, places.get(one.id), edit))}</svg></div></figure>`;
}
function line(from, to) {
  const [a, b, c, d] = [from.x + WIDE, from.y + HIGH / 2, to.x - 4, to.y + HIGH / 2];
  return svg`<path class="edge ${from.out || to.out ? "out" : ""}" d="M${a} ${b}C${a + FAR / 2} ${b} ${c - FAR / 2} ${d} ${c} ${d}m-5-4l5 4-5 4"></path>`;
}
/** A text on as many lines as there are widths, in ems of a narrow letter; what is left is cut. */
function wrapped(text, ...rooms) {
  const out = rooms.map(() => "");
  const wide = (part) => [...part].reduce((sum, char) => sum + (char > "\u2e7f" ? 2 : /[A-ZmwMW@%]/.test(char) ? 1.35 : 1), 0);
  let at = 0;
  for (const part of cut(text, 200).match(/\S+\s*|\s+/g) ?? []) {
    if (out[at] && wide(out[at] + part.trim()) > rooms[at] && at < rooms.length - 1) at += 1;
    out[at] += part;
  }
  return out.map((one, n) => {
    let kept = [...one];
    while (kept.length && wide(kept.join("")) > rooms[n]) kept = kept.slice(0, -1);
    return kept.length < [...one].length ? `${kept.join("").trim()}…` : one;
  });
}
function box(one, { x, y }, edit) {
  const [name, tone = ""] = look(one.status);
  const kind = edit && Object.keys(MARKS).find((key) => edit[key].includes(one.id));
  const [first, second] = wrapped(one.title, kind ? 24 : 28, 28);
  const word = `${t(`status.${one.status}`)}${one.attempts > 1 ? ` · ${t("plan.attempts", { n: one.attempts })}` : ""}`;
  return svg`<g class="step ${tone} s-${one.status} ${now.step === one.id ? "chosen" : ""}" transform="translate(${x} ${y})" role="button" tabindex="0" data-step=${one.id}
    aria-pressed=${now.step === one.id ? "true" : "false"} aria-label="${cut(one.title, 300)}: ${word}${kind ? `, ${t(`plan.${kind}`)}` : ""}" @click=${() => focus(one.id)}
    @keydown=${(e) => [" ", "Enter"].includes(e.key) && (e.preventDefault(), focus(one.id))}>
    <rect width=${WIDE} height=${HIGH} rx="8"></rect><text class="name" x="12" y="22">${first}</text><text class="name" x="12" y="38">${second}</text>
    <text class="actor" x="12" y=${second ? 55 : 40}>${wrapped(one.tools[0] ?? one.kind, 26)}</text><path class="sign" transform="translate(10 60)" d=${PATHS[name]}></path><text class="word" x="30" y="72">${wrapped(word, 26)}</text>
    ${kind ? svg`<path class="sign ${kind}" transform="translate(${WIDE - 24} 8)" d=${PATHS[MARKS[kind]]}></path>` : nothing}</g>`;
}

function detail(one) {
  const fact = (name) => (one[name] ? html`<h3>${t(`plan.${name}`)}</h3><p class="line ${name === "error" ? "bad" : ""}">${one[name]}</p>` : nothing);
  return html`<header><h2>${one.title}</h2>${shut(() => focus(one.id))}</header>
    <p class="under">${state(one.status)}<span class="dim">${t("plan.attempts", { n: one.attempts })}</span>${one.tools.map((name) => chip(name))}</p>
    ${one.depends_on.length ? html`<p class="dim">${t("plan.after")} <code>${one.depends_on.join(", ")}</code></p>` : nothing}${["criteria", "error", "result"].map(fact)}
    ${now.rows.length ? html`<h3>${t("plan.rows")}</h3><ol class="brief">${now.rows.map((row) => rowLink(now.live.id, row))}</ol>` : nothing}`;
}
