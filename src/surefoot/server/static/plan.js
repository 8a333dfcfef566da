// The plan, drawn.

import { html, svg } from "./vendor/lit-html.js";
import { get } from "./api.js";
import { openRun } from "./live.js";
import { chip, empty, go, icon, loading, look, recordLink, rowLink, set, shut, skeleton, state, trouble } from "./parts.js";
import { runKeys, whole } from "./run.js";
import { cut, t } from "./text.js";

const [WIDE, HIGH, FAR, NEAR, EDGE] = [200, 84, 40, 20, 12];
const MARKS = { added: "plus", removed: "minus", changed: "tilde" };
const now = {};
const load = loading(now, async () => {
	const find = (version) => get(`${now.live.path}/plan${version ? `?version=${version}` : ""}`);
	const [plan, other] = await Promise.all([find(now.version), now.beside ? find(now.beside) : null]);
	return { plan, other };
});
async function focus(step) {
	set(now, { step: now.step === step ? "" : step, rows: [] });
	const held = [];
	for (let since = 0; now.step === step && since !== null && since < 2000 && held.length < 60;) {
		const told = await get(`${now.live.path}/rows?since=${since}&limit=500`);
		held.push(...told.rows.filter((row) => row.step_id === step));
		since = told.next;
	}
	if (now.step === step) set(now, { rows: held.slice(0, 60) });
}

export const plan = {
	title: () => t("tab.plan"),
	open([id], asked, isNew) {
		set(now, { live: openRun(id), version: Number(asked.get("version")), beside: Number(asked.get("beside")) });
		if (isNew) set(now, { plan: null, other: null, error: null, step: "", rows: [] });
		now.live.ready.then(load);
	},
	changed: load,
	again: () => now.live.load().then(load),
	keys: (key) => (key === "Escape" && now.step ? (focus(now.step), true) : runKeys(now.live, key)),
	view: () => whole(now.live, "plan", body),
};

function turn(name, value) {
	const asked = { version: now.version || now.plan.version, beside: now.beside, [name]: Number(value) };
	go(now.live.to(`/plan?version=${asked.version}&beside=${asked.beside}`), "replace");
}
const chooser = (name, shown, none) => html`<label class="field"><span>${t(`plan.${name}`)}</span><select @change=${(e) => turn(name, e.target.value)}>
	${none ? html`<option value="0">${none}</option>` : ""}${now.plan.versions.map((one) => html`<option ?selected=${shown === one}>${one}</option>`)}</select></label>`;

function body() {
	const { plan: shown, other, error } = now;
	if (error) return error.name === "no_plan" ? empty("plan", "plan.none") : trouble(error, load);
	if (!shown) return skeleton(5, true);
	const [left, right] = other ? [shown, other].sort((a, b) => a.version - b.version) : [shown];
	const edit = right?.edits.find((one) => one.version === right.version);
	const step = shown.steps.find((one) => one.id === now.step);
	return html`<div class="planbar"><p>${shown.description}</p>${shown.versions.length > 1 ? html`${chooser("version", shown.version)}${chooser("beside", now.beside, t("plan.alone"))}` : ""}</div>
		<div class="plans ${right ? "two" : ""} ${step ? "stepped" : ""}">${[left, right].filter(Boolean).map((one) => figure(one, edit))}
			${step ? html`<aside class="pane" aria-label=${step.title}>${detail(step)}</aside>` : ""}</div>
		${shown.edits.length ? html`<section class="card"><h2>${t("plan.edits")}</h2><ul>${shown.edits.map(told)}</ul></section>` : ""}`;
}
const told = (one) => html`<li class="edit"><p><b>v${one.version}</b> ${chip(one.strategy)} ${one.reason} ${recordLink(now.live.id, one.at)}</p>
	<p>${Object.keys(MARKS).map((kind) => one[kind].map((id) => html`${mark(kind)} <code>${id}</code>`))}</p></li>`;

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
function box(one, { x, y }, edit) {
	const kind = edit && Object.keys(MARKS).find((key) => edit[key].includes(one.id));
	return svg`<foreignObject x=${x} y=${y} width=${WIDE} height=${HIGH}>${html`<button class="step ${look(one.status)[1]} s-${one.status}" data-step=${one.id}
		aria-pressed=${now.step === one.id} title=${cut(one.title, 300)} @click=${() => focus(one.id)}><b>${cut(one.title, 200)}</b>${kind ? mark(kind) : ""}<code>${one.tools[0] ?? one.kind}</code>
		${state(one.status)}${one.attempts > 1 ? html`<small>${t("plan.attempts", { n: one.attempts })}</small>` : ""}</button>`}</foreignObject>`;
}
const mark = (kind) => html`<span class=${kind}>${icon(MARKS[kind])}<span>${t(`plan.${kind}`)}</span></span>`;

function detail(one) {
	const fact = (name) => (one[name] ? html`<h3>${t(`plan.${name}`)}</h3><p class="line ${name === "error" ? "bad" : ""}">${one[name]}</p>` : "");
	return html`<header><h2>${one.title}</h2>${shut(() => focus(one.id))}</header>
		<p class="under">${state(one.status)}<span class="dim">${t("plan.attempts", { n: one.attempts })}</span>${one.tools.map((name) => chip(name))}</p>
		${one.depends_on.length ? html`<p class="dim">${t("plan.after")} <code>${one.depends_on.join(", ")}</code></p>` : ""}${["criteria", "error", "result"].map(fact)}
		${now.rows.length ? html`<h3>${t("plan.rows")}</h3><ol class="brief">${now.rows.map((row) => rowLink(now.live.id, row))}</ol>` : ""}`;
}
