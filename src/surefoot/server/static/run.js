// What every view of a run has.

import { html } from "./vendor/lit-html.js";
import { bytes, enc, get, say, send } from "./api.js";
import { ask, askFor, button, callPath, chip, go, icon, isOver, labels, meter, notice, paint, plain, runPath, said, skeleton, standing, state, trouble, when } from "./parts.js";
import { brief, cut, dollars, number, span, t, tokens } from "./text.js";

let news = {};
export function tell(live, text, tone = "good") {
	news = { id: live.id, text, tone };
	paint();
}

function head(live, place) {
	const run = live.summary;
	const asked = run.waiting[0];
	const tab = (name, path, text = t(`tab.${name}`)) => html`<a href=${path} class=${name} aria-current=${place === name ? "page" : "false"}>${text}</a>`;
	return html`<header><p class="crumbs"><a href="/">${t("nav.runs")}</a> / <code>${live.id}</code>
			${run.parent ? html` · ${t(run.follows ? "run.follows" : "run.fork")} <a href=${runPath(run.parent)}><code>${run.parent}</code></a>` : ""}</p>
		<h1 tabindex="-1">${cut(run.task, 300) || t("run.untold")}</h1>
		<div class="under"><span aria-live="polite" class="now">${standing(run, "big")}${run.reason ? chip(plain(run.reason)) : ""}</span>
			${run.agent ? html`<span class="dim">${run.agent}</span>` : ""}${labels(run.labels)}<span class="dim">${t("run.started")} ${when(run.started_at)}</span>
			${isOver(run) || !live.stream ? "" : html`<span class="pulse ${live.stream}">${icon("dot")}${live.newest - live.total > 200 ? t("feed.behind", { n: live.newest - live.total }) : t(`feed.${live.stream}`)}</span>`}</div>
		<div class="bar"><nav class="tabs" aria-label=${t("run.views")}>${tab("timeline", live.to())}${tab("plan", live.to("/plan"))}
			${asked ? tab("call", callPath(live.id, asked.call), html`${icon("ask")}${t(".question")}${run.waiting.length > 1 ? ` (${run.waiting.length})` : ""}`) : place === "call" ? tab("call", "") : ""}
			${tab("at", live.to(`/at/${live.total}`))}</nav>${actions(live)}</div></header>`;
}

function states(live, place) {
	const { summary: run } = live;
	const asked = run.waiting[0];
	const title = asked ? t(`asked.${asked.about}`, { name: asked.name }) : "";
	return html`<div role="status">${news.id === live.id && news.text ? notice(news.tone, news.text) : ""}</div>
		${run.damaged ? notice("bad", t("damaged.title", { at: run.damaged.at }), `${run.damaged.why}. ${t("damaged.text")}`) : ""}
		${run.waits_for ? notice("warn", t("unserved.title"), t(run.agent ? "unserved.text" : "unserved.cli", run))
			: run.status === "interrupted" ? notice("warn", t("interrupted.title"), t("interrupted.text"), button(t("do.resume"), () => resume(live))) : ""}
		${asked && place !== "call" ? notice("asks", title, asked.lines[0]?.text, html`<a class="button main" href=${callPath(live.id, asked.call)}>${t("asked.read")}</a>`) : ""}
		<div class="hidden" aria-live="assertive">${title}</div>`;
}

export function whole(live, place, body) {
	const shown = live.error ? html`<h1 tabindex="-1" class="hidden">${live.id}</h1>${trouble(live.error, () => live.load())}`
		: live.summary ? html`${head(live, place)}${states(live, place)}${body()}`
		: skeleton(12);
	return html`<div class="wide">${shown}</div>`;
}

const word = (work, text) => async (live, value) => {
	try {
		const told = await work(live, value);
		tell(live, text ? t(`did.${text}`) : told);
		live.soon(100);
	} catch (error) {
		tell(live, said(error), "bad");
	}
};
const resume = word(async (live) => (await send(`${live.path}/resume`, {}), (live.tries = 60)), "resume");
const note = word((live, text) => say(`${live.path}/notes`, { text }), "note");
const cancel = word((live, reason) => say(`${live.path}/cancel`, { reason }), "cancel");
const save = word(async (live, form) => {
	const address = URL.createObjectURL(await bytes(`${live.path}/export?form=${form}`));
	Object.assign(document.createElement("a"), { href: address, download: `${live.id}.${form}` }).click();
	return t("did.save", { form });
});
const text = (must) => html`<textarea id="field" rows="3" ?required=${must}></textarea>`;

const fork = word(async (live, at) => go(runPath((await send(`${live.path}/fork`, { at: Number(at) })).run_id)));
export const forkAt = (live, at) => askFor("fork", html`<input id="field" type="number" min="1" max=${live.total} value=${at} required autofocus>`, (value) => fork(live, value), { n: live.total });

async function compareWith(live) {
	const { parent } = live.summary;
	const near = await Promise.all([get(`/runs?parent=${enc(live.id)}&limit=5`).then(({ runs }) => runs), parent ? get(runPath(parent)) : []]).catch(() => []);
	const path = (id) => `/compare/${enc(live.id)}/${enc(id)}`;
	askFor("compare", html`${near.flat().map((run) => html`<a class="near" href=${path(run.run_id)}>${standing(run)}<code>${run.run_id}</code></a>`)}
		<input id="field" required spellcheck="false">`, (id) => go(path(id)));
}

function actions(live) {
	const over = isOver(live.summary);
	const item = (name, from, act, label = t(`do.${name}`)) => html`<button class="item" @click=${(e) => (e.target.closest("details").removeAttribute("open"), act())}>${icon(from)}${label}</button>`;
	return html`<div class="actions">${button(t("do.fork"), () => forkAt(live, live.total), "small", "fork")}${button(t("do.compare"), () => compareWith(live), "small", "swap")}
		<details class="menu"><summary class="button small">${t("do.more")}${icon("down")}</summary><div class="items">
			${over ? "" : item("note", "say", () => askFor("note", text(true), (value) => note(live, value)))}
			${over && !["stopped", "failed"].includes(live.summary.status) ? "" : item("resume", "play", () => resume(live))}
			${over ? "" : item("cancel", "slash", () => askFor("cancel", text(false), (value) => cancel(live, value)))}
			${["jsonl", "md", "html"].map((form) => item("save", "save", () => save(live, form), t("do.save", { form })))}</div></details></div>`;
}

export function runKeys(live, key) {
	const asked = live.summary?.waiting[0];
	const act = live.summary && { t: () => go(live.to()), p: () => go(live.to("/plan")), s: () => go(live.to(`/at/${live.total}`)), f: () => forkAt(live, live.total),
		c: () => compareWith(live), q: asked && (() => go(callPath(live.id, asked.call))) }[key];
	act?.();
	return Boolean(act);
}

export const short = (run) => `${tokens(run.usage)} ${t("fact.tokens").toLowerCase()} · ${dollars(run.usage.cost_usd)} · ${span(run.elapsed_s)}`;
const told = { cost: dollars, seconds: span };
export function figures(live, now = live.state, isThen = false) {
	const run = live.summary;
	const { usage } = now;
	const fact = (name, value, more = "") => html`<div><dt>${t(`fact.${name}`)}</dt><dd>${value}<small>${more}</small></dd></div>`;
	return html`<dl class="facts">
		${fact("tokens", tokens(usage), t("fact.inout", { in: brief(usage.input_tokens), out: brief(usage.output_tokens) }))}
		${fact("cost", dollars(usage.cost_usd), usage.cached_tokens ? t("fact.cached", { n: Math.round((100 * usage.cached_tokens) / (usage.input_tokens || 1)) }) : "")}
		${fact("took", span(now.elapsed_s))}${isThen ? fact("step", number(now.step)) : fact("calls", number(run.calls), t("fact.requests", { n: run.requests }))}</dl>
		${now.context ? meter(t("fact.context"), brief, now.context.used, now.context.window) : ""}
		${now.budget.filter((one) => one.limit).map((one) => meter(t(`budget.${one.name}`), told[one.name] ?? brief, one.used, one.limit))}
		${now.open.length ? html`<h2>${t("fact.open")}</h2><ul class="opens">${now.open.map((one) => html`<li><a href=${callPath(live.id, one.id)}><code>${one.name}</code>${state(one.status)}</a></li>`)}</ul>` : ""}
		${isThen ? "" : html`${Object.entries(run.models).map(([role, model]) => html`<p class="speaker"><span class="dim">${role}</span> <code>${model}</code></p>`)}
			${run.answer ? html`<h2>${t("fact.answer")}</h2><p class="final">${now.answer || run.answer}</p>` : ""}`}`;
}
