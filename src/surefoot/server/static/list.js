// The list of runs, kept new by the feed.

import { html } from "./vendor/lit-html.js";
import { follow, get } from "./api.js";
import { button, callPath, chip, empty, go, hidden, icon, isOver, labels, later, loading, paint, plain, runPath, set, skeleton, standing, statuses, toggle, trouble, when } from "./parts.js";
import { ago, dollars, number, span, t, tokens } from "./text.js";
import { look, mayNotify, notify, waits } from "./waits.js";
import { Window } from "./window.js";

const now = { filter: {}, runs: null, next: null, error: null, agents: [], at: -1, feed: "live", more: false };
const rows = new Window(60);
let stop = new AbortController();
const soon = later();
const count = () => now.runs?.length ?? 0;

const find = (more, stop) => get(`/runs?${new URLSearchParams({ ...now.filter, ...more })}`, stop);
const load = loading(now, (stop) => find({ limit: 50 }, stop));
async function older() {
	if (now.older || !now.next) return;
	const asked = (now.older = now.asking);
	paint();
	const found = await find({ limit: 200, cursor: now.next }, asked.signal).catch(() => null);
	if (found && asked === now.asking) set(now, { runs: [...now.runs, ...found.runs], next: found.next });
	set(now, { older: null });
}

function take({ event, data }) {
	if (event !== "summary" || !now.runs) return;
	const at = now.runs.findIndex((run) => run.run_id === data.run_id);
	if (at >= 0) now.runs = now.runs.with(at, data);
	else if (isNarrow()) soon(load, 1000);
	else if (data.started_at >= (now.runs[0]?.started_at ?? 0)) {
		now.runs = [data, ...now.runs];
		if (rows.first) scrollBy({ top: rows.height, behavior: "instant" });
	}
	if (data.questions || waits.runs.some((run) => run.run_id === data.run_id)) look(400);
	paint();
}
async function listen() {
	await load();
	look(200);
	get("/agents", stop.signal).then(({ agents }) => set(now, { agents }), () => {});
	const last = Math.max(0, ...(now.runs ?? []).map((run) => run.change));
	follow("/feed", last, take, (feed) => set(now, { feed }), stop.signal);
}

function narrow(name, value) {
	const asked = new URLSearchParams(Object.entries({ ...now.filter, [name]: value }).filter(([, held]) => held));
	go(`/?${asked}`, "replace");
}
const isNarrow = () => Object.keys(now.filter).length;

export const list = {
	title: () => t("nav.runs"),
	open(_, asked, isNew) {
		const filter = Object.fromEntries(["status", "agent", "label", "q", "waiting"].map((name) => [name, asked.get(name)]).filter(([, value]) => value));
		const isOther = JSON.stringify(filter) !== JSON.stringify(now.filter);
		if (isOther) set(now, { filter, at: -1, runs: isNew ? null : now.runs });
		if (!isNew) return isOther && load();
		stop = new AbortController();
		listen();
	},
	close: () => stop.abort(),
	scrolled() {
		if (rows.move(count())) paint();
		if (rows.last > count() - 30) older();
	},
	again: load,
	drawn() {
		rows.fit(".runs", count());
		if (rows.move(count())) paint();
		if (now.focus) document.querySelector(`.runs a[data-at="${now.at}"]`)?.focus({ preventScroll: true });
		now.focus = false;
	},
	keys(key) {
		const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[key];
		if (!by || !count()) return false;
		now.at = Math.max(0, Math.min(now.at + by, count() - 1));
		rows.show(now.at);
		rows.move(count());
		set(now, { focus: true });
		return true;
	},
	view: () => html`<div class="wide">
		<div class="headline"><h1 tabindex="-1">${t("nav.runs")}</h1><span class="pulse ${now.feed}">${icon("dot")}${t(`feed.${now.feed}`)}</span></div>
		${waits.count ? asks() : ""}${filters()}${found()}<div class="hidden" aria-live="assertive">${waits.said}</div></div>`,
};

const asks = () => html`<section class="asks" aria-labelledby="asks"><header><h2 id="asks">${icon("ask")}${t("waits.title", { n: waits.count })}</h2>
	${mayNotify() ? html`<button class="plain" @click=${notify}>${icon("bell")}${t("waits.notify")}</button>` : ""}</header>
	<ul>${waits.runs.slice(0, 3).map((run) => {
		const asked = waits.asked.get(run.run_id);
		return html`<li><a href=${asked ? callPath(run.run_id, asked.call) : runPath(run.run_id)}>${standing(run)}<span class="what">${asked?.name ? html`<code>${asked.name}</code>` : ""}<span>${run.task}</span></span>
			<span class="dim num">${asked?.expires_at ? t("waits.expires", { when: ago(asked.expires_at) }) : when(asked?.asked_at ?? run.changed_at)}</span></a></li>`;
	})}</ul>${waits.count > 3 ? html`<a class="all" href="/?waiting=1">${t("waits.all", { n: waits.count })}</a>` : ""}</section>`;

const field = (name, body) => html`<label class="field f-${name}"><span>${t(name === "status" ? "fact.status" : `filter.${name}`)}</span>${body}</label>`;
const choice = (name, values, told = String) => field(name, html`<select @change=${(e) => narrow(name, e.target.value)}><option value="">${t("filter.any")}</option>
	${values.map((value) => html`<option value=${value} ?selected=${now.filter[name] === value}>${told(value)}</option>`)}</select>`);
const input = (name, hint, isFind) => field(name, html`<input type="search" ?data-find=${isFind} placeholder=${hint} .value=${now.filter[name] ?? ""} @input=${(e) => soon(narrow, 250, name, e.target.value.trim())}>`);
const filters = () => html`<search class="filters sticky ${now.more ? "more" : ""}">${input("q", t("filter.hint"), true)}${choice("status", statuses, (value) => t(`status.${value}`))}
	${choice("agent", now.agents.map((one) => one.name))}${input("label", "team:web", false)}
	${toggle(t("filter.waiting"), now.filter.waiting, () => narrow("waiting", now.filter.waiting ? "" : "1"))}
	<span class="morebutton">${toggle(t("filter.more"), now.more, () => set(now, { more: !now.more }))}</span></search>`;

function found() {
	const { runs } = now;
	if (now.error) return trouble(now.error, load);
	if (!runs) return skeleton(8, true);
	if (!runs.length) return isNarrow() ? empty("find", "list.none", html`<a class="button" href="/">${t("list.clear")}</a>`)
		: empty("play", "list.empty", html`<a class="button main" href="/?new=1">${t("nav.new")}</a>`);
	return html`<div class="heads" aria-hidden="true">${"status task calls tokens cost took changed".split(" ").map((name) => html`<span>${t(`fact.${name}`)}</span>`)}</div>
		<ol class="runs" aria-label=${t("nav.runs")}>${runs.slice(rows.first, rows.last).map((run, at) => row(run, rows.first + at))}</ol>
		<p class="end dim">${now.next ? button(t(now.older ? ".loading" : "list.older"), older) : t("list.end", { n: runs.length })}</p>`;
}
const fact = (name, text) => html`<span class="num">${hidden(`${t(`fact.${name}`)} `)}${text}</span>`;
const row = (run, at) => html`<li><a href=${runPath(run.run_id)} data-at=${at}>${standing(run)}
	<span class="what"><span class="task">${run.task || t("run.untold")}</span><span class="sub">${run.agent ? html`<b>${run.agent}</b>` : ""}<code>${run.run_id}</code>${run.parent ? chip(`${t(run.follows ? "run.follows" : "run.fork")} ${run.parent}`) : ""}
		${run.reason ? chip(plain(run.reason)) : ""}${labels(run.labels)}
		${isOver(run) ? html`<span class="answer">${run.answer}</span>` : ""}</span></span>
	${fact("calls", number(run.calls))}${fact("tokens", tokens(run.usage))}${fact("cost", dollars(run.usage.cost_usd))}${fact("took", span(run.elapsed_s))}
	<span class="num changed">${when(run.changed_at)}</span></a></li>`;
