// What views are made of.

import { html } from "./vendor/lit-html.js";
import { enc, signal, visible } from "./api.js";
import { ago, cut, find, moment, t } from "./text.js";

const PATHS = {
	check: "M3.5 8.5l3 3 6-7", half: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11", stop: "M4.5 4.5h7v7h-7z",
	cross: "M4 4l8 8M12 4l-8 8", slash: "M8 2.5a5.5 5.5 0 1 0 .01 0M4.2 11.8l7.6-7.6", bang: "M8 3v6.5M8 12.4v.6",
	ask: "M5.6 6a2.4 2.4 0 1 1 3.6 2.1C8.4 8.6 8 9.1 8 10M8 12.4v.6", play: "M5.5 3.5l6.5 4.5-6.5 4.5z",
	dot: "M8 5.5a2.5 2.5 0 1 0 .01 0", ring: "M8 4a4 4 0 1 0 .01 0", bolt: "M9 2.5L4.5 9H8l-1 4.5L11.5 7H8z", hold: "M6 4v8M10 4v8",
	warn: "M8 2.5L14 13H2zM8 6.5v3M8 11.2v.3", down: "M4 6.5l4 4 4-4", find: "M7 3a4 4 0 1 0 .01 0M10 10l3.5 3.5",
	fork: "M4.5 3v10M4.5 8.5c4 0 6.5-1 6.5-5M9 5l2-2 2 2", plus: "M8 3.5v9M3.5 8h9", minus: "M4 8h8", tilde: "M3.5 9c1.5-3 3-3 4.5-1s3 2 4.5-1",
	bell: "M4 11h8l-1-1.5V7a3 3 0 0 0-6 0v2.5zM7 13h2", save: "M8 3v7M5 7.5L8 10.5l3-3M3.5 13h9", swap: "M3 6h9M9.5 3.5L12 6l-2.5 2.5M13 11H4",
	call: "M3 8h9M9 5l3 3-3 3", result: "M13 8H4M7 5L4 8l3 3", think: "M4.5 8h.01M8 8h.01M11.5 8h.01", say: "M3 4h10v6.5H7.5L5 13v-2.5H3z",
	plan: "M3 4h4v3H3zM9 9h4v3H9zM7 5.5h2.5v3.5", gate: "M8 2.5l5 2v3.5c0 3-2 4.8-5 5.8-3-1-5-2.8-5-5.8V4.5z", odd: "M4 6h8M4 10h8M10 3.5l-4 9",
	flag: "M4.5 13.5v-10h7l-1.5 3 1.5 3h-7",
};
const table = (text) => Object.fromEntries(text.split(",").map((one) => one.split(" ")).map(([name, ...rest]) => [name, rest]));
const KINDS = table("head flag,reasoning think,reply say,call call,verdict gate,question ask,result result,prefetch save,select find,plan plan,limit hold,failure cross,word say,warning warn,end flag");
const STYLES = { good: "check", bad: "cross", warn: "bang" };
export const icon = (name) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]}></path></svg>`;
export const rowIcon = ({ kind, style }) => icon((kind !== "question" && kind !== "plan" && STYLES[style]) || KINDS[kind]?.[0] || "dot");

const STANDINGS = table("running dot live,queued ring,paused ask asks,ready play live,completed check good,completed_partial half warn,stopped stop warn,failed cross bad," +
	"cancelled slash,interrupted bolt warn,set_aside hold,damaged warn bad,approval ask asks,in_doubt bang doubt,waiting ask asks,succeeded check good,skipped minus,superseded cross,allow check good,ask ask asks,deny cross bad");
export const statuses = Object.keys(STANDINGS).slice(0, 12);
export const look = (status) => STANDINGS[status] ?? ["ring"];
export function state(status, more = "") {
	const [name, tone = ""] = look(status);
	return html`<span class="state ${tone} ${status === "running" ? "moves" : ""} ${more}">${icon(name)}<span>${t(`status.${status}`)}</span></span>`;
}
export const standing = (run, more) => state((run.status === "paused" && run.standing) || run.status, more);
export const isOver = (run) => ["completed", "completed_partial", "stopped", "failed", "cancelled", "damaged"].includes(run.status);

export const when = (at, told = ago(at)) => html`<time datetime=${new Date(at * 1000).toISOString()} title=${moment(at)}>${told}</time>`;
export const chip = (text, tone = "") => html`<span class="chip ${tone}">${text}</span>`;
export const plain = (name) => name.replaceAll("_", " ");
export const labels = (held) => Object.entries(held).map(([name, value]) => chip(visible(`${name}: ${value}`)));
export const hidden = (text) => html`<span class="hidden">${text}</span>`;
export const button = (text, act, tone = "", name = "") =>
	html`<button type="button" class="button ${tone}" @click=${act}>${name ? icon(name) : ""}<span>${text}</span></button>`;
export const toggle = (text, on, act) => html`<button class="toggle" aria-pressed=${!!on} @click=${act}>${text}</button>`;
export const shut = (act) => html`<button class="plain" aria-label=${t(".close")} @click=${act}>${icon("cross")}</button>`;
export const recordLink = (run, seq, text = t("pane.record", { n: seq })) => html`<a class="num" href=${runPath(run, `?r=${seq}`)}>${text}</a>`;

export const lines = (told) => html`<div class="lines">${told.map((one) =>
	html`<div class="line ${one.style} in${Math.min(Math.ceil((one.indent ?? 0) / 2), 3)}">${cut(one.text, 7e4) || "\u00a0"}</div>`)}</div>`;
export const words = (row, most) => html`<span class="text">${row.parts.map((one) => html`<span class=${one.role}>${cut(one.text, most)}</span>`)}</span>`;
export const rowLink = (run, row) => html`<li class="k-${row.kind} ${row.style}"><a href=${runPath(run, `?r=${row.seq}`)}>${rowIcon(row)}<span class="kind">${t(`kind.${row.kind}`)}</span>${words(row, 300)}</a></li>`;

export const notice = (tone, title, text = "", action = "") => html`
	<div class="notice ${tone}" role=${tone === "bad" ? "alert" : "note"}>${icon(tone === "asks" ? "ask" : STYLES[tone])}
		<div><strong>${title}</strong>${text ? html`<p>${text}</p>` : ""}</div>${action}</div>`;
export const empty = (name, key, action = "", values = {}) => html`
	<div class="empty">${icon(name)}<h2>${t(key, values)}</h2><p>${t(`${key}.text`, values)}</p>${action}</div>`;
export const crumbs = (title) => html`<p class="crumbs"><a href="/">${t("nav.runs")}</a></p><h1 tabindex="-1">${title}</h1>`;
export const skeleton = (rows, tall) => html`
	<div class="skeleton ${tall ? "tall" : ""}" role="status" aria-label=${t(".loading")}>${Array.from({ length: rows }, () => html`<i></i>`)}</div>`;

export const said = (error) => find(`problem.${error.status ? error.name : "unreachable"}`) ?? (error.detail || error.message);
export const trouble = (error, again) => error.status === 404
	? empty("find", "gone.run", html`<a class="button" href="/">${t("nav.runs")}</a>`)
	: notice("bad", error.status ? error.message : t("problem.title"), said(error), button(t(".again"), again));

/** Work that puts what it finds into `now`; only the newest call counts, and ends those before it. */
export const loading = (now, work) => async () => {
	now.asking?.abort();
	const mine = (now.asking = new AbortController());
	const found = await work(mine.signal).catch((error) => (error.name === "AbortError" ? {} : { error }));
	if (now.asking === mine) set(now, { error: null, ...found });
};
/** Does the newest work after a pause; none: nothing. */
export const later = () => {
	let due = 0;
	return (work, ms, ...given) => {
		clearTimeout(due);
		if (work) due = setTimeout(work, ms, ...given);
	};
};

export function meter(name, told, used, limit) {
	const part = limit ? Math.max(0, Math.min(used / limit, 1)) : 0;
	return html`<div class="meter ${part >= 0.9 ? "bad" : part >= 0.7 ? "warn" : ""}"><span>${name}</span><b>${told(used)}${limit ? ` / ${told(limit)}` : ""}</b>${limit
		? html`<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="whole" width="100" height="4"></rect><rect width=${100 * part} height="4"></rect></svg>` : ""}</div>`;
}

let asked = null;
export function ask(title, body) {
	asked = title && { title, body };
	paint();
}
/** A form; `act` gets the text of a field by its name. */
export const form = (act, body, tone = "") => html`<form class="form ${tone}" @submit=${(e) => {
	e.preventDefault();
	act((name) => e.target.elements[name]?.value.trim() ?? "");
}}>${body}</form>`;
export const choice = (name, on, act, title, text) => html`<label class="choice"><input type="radio" name=${name} required .checked=${on} @change=${act}><span><b>${title}</b><small>${text}</small></span></label>`;
export const askFor = (key, field, act, values) => ask(t(`do.${key}`), () => form((text) => {
	ask();
	act(text("field"));
}, html`<p>${t(`${key}.text`, values)}</p><label for="field">${t(`${key}.label`)}</label>${field}<footer>${button(t(".back"), () => ask())}<button class="button main">${t(`do.${key}`)}</button></footer>`));
export const dialog = () => asked ? html`
	<dialog class="dialog" aria-labelledby="asked" @close=${() => ask()} @click=${(e) => e.target.matches("dialog") && ask()}>
		<div><header><h2 id="asked">${asked.title}</h2>${shut(() => ask())}</header>${asked.body()}</div></dialog>` : "";
export const paint = () => signal("paint");
export const set = (now, more) => paint(Object.assign(now, more));
export const go = (to, how) => signal("go", { to, how });
export const runPath = (id, more = "") => `/runs/${enc(id)}${more}`;
export const callPath = (id, call) => runPath(id, `/calls/${enc(call)}`);
