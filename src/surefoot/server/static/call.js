// One call in full, and a person's answer.

import { html } from "./vendor/lit-html.js";
import { enc, get, say, visible } from "./api.js";
import { openRun } from "./live.js";
import { callPath, chip, choice, form, go, icon, lines, loading, notice, paint, plain, recordLink, runPath, said, set, skeleton, state, trouble, when } from "./parts.js";
import { runKeys, tell, whole } from "./run.js";
import { ago, cut, t } from "./text.js";
import { look } from "./waits.js";

const ORIGINS = { user: "good", config: "good", declared: "good", derived: "good", untrusted: "warn", relayed: "warn", invented: "bad" };
const now = {};
const load = loading(now, async () => ({ why: await get(`${now.live.path}/calls/${enc(now.id)}/why`), ready: true }));
const home = () => now.why?.run_id || now.live.id;
const asked = () => now.live.summary?.waiting.find((one) => one.call === now.id);

export const call = {
	title: () => now.why?.name ?? asked()?.name ?? t("tab.call"),
	open([run, id], _, isNew) {
		if (!isNew) return;
		set(now, { live: openRun(run), id, why: null, error: null, ready: false, busy: false, hint: false, outcome: "", refusing: false, digest: "", old: false, armed: 0 });
		now.live.ready.then(load).then(call.changed);
	},
	again: () => now.live.load().then(load),
	// A click for one question must not answer the next.
	changed() {
		const digest = asked()?.digest ?? "";
		if (digest === now.digest) return;
		set(now, { old: Boolean(now.digest && digest), digest, armed: Date.now() + 700 });
		setTimeout(paint, 720);
		load();
	},
	keys(key) {
		if (key !== "r" || !asked()) return runKeys(now.live, key);
		set(now, { refusing: true, focus: true });
		return true;
	},
	drawn() {
		if (now.focus) document.getElementById("reason")?.focus();
		now.focus = false;
	},
	view: () => whole(now.live, "call", body),
};

function body() {
	const { why } = now;
	const question = asked();
	if (!now.ready && !now.error) return skeleton(6, true);
	if (!why && !question) return trouble(now.error, load);
	const values = why?.arguments ?? question?.arguments ?? {};
	return html`<div class="ask"><div class="asked">
		<h2>${t(question ? `ask.${question.about}` : "ask.was")} <code>${why?.name || question?.name || t("tab.plan")}</code></h2>
		${now.old ? notice("warn", t("ask.changed"), t("ask.changed.text")) : ""}
		${question ? html`<section class="card question" aria-label=${t(".question")}>${lines(question.lines)}</section>` : ""}
		${Object.keys(values).length ? card("arguments", parameters(values, why?.values ?? [])) : ""}
		${why ? reasons(why) : ""}</div>
		<aside class="decide card" aria-label=${t("ask.answer")}>${question ? answers(question) : html`<h2>${t("ask.settled")}</h2>${state(why.later.at(-1)?.decision ?? why.decision)}`}</aside></div>`;
}
const card = (name, inside) => html`<section class="card"><h3>${t(`ask.${name}`)}</h3>${inside}</section>`;

const belongs = (name, path) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
const parameters = (held, values) => html`<dl class="parameters">${Object.entries(held).map(([name, value]) => html`<div><dt>${visible(name)}</dt>
	<dd><pre class="value" tabindex="0" aria-label=${visible(name)}>${typeof value === "string" ? value : visible(JSON.stringify(value, null, 2))}</pre>${values.filter((one) => belongs(name, one.path)).map((one) => source(one, one.path !== name))}</dd></div>`)}</dl>
	${values.filter((one) => !Object.keys(held).some((name) => belongs(name, one.path))).map((one) => source(one, true))}`;
function source(one, isPart) {
	const { kind, call_id: from, seq, text } = one.source;
	const tone = ORIGINS[one.origin];
	const origin = one.origin === "untrusted" && kind === "words" ? "user" : one.origin;
	return html`<div class="source ${tone}"><p>${isPart ? html`<code>${one.path}</code> <q>${cut(one.value, 400)}</q>` : ""}${chip(t(`origin.${origin}`), tone)}
		<span class="dim">${[one.role, one.kind, one.form && t(`form.${one.form}`)].filter((part) => part && part !== "text").join(" · ")}</span>${seq == null ? "" : recordLink(home(), seq)}</p>
		${one.note ? html`<p>${cut(one.note, 2e3)}</p>` : ""}${text ? html`<blockquote><span class="dim">${t(`source.${kind || "none"}`, { call: from })}</span> ${cut(text, 2e3)}</blockquote>` : ""}</div>`;
}

const reasons = (why) => html`${card("policies", html`<p class="decided">${state(why.decision)}${why.rule ? html`<code>${why.rule}</code>` : ""}<span>${cut(why.reason, 2e3)}</span></p>
		<ul class="policies">${why.policies.map((one) => html`<li><span class="dim">${plain(one.name)}</span>${state(one.verdict)}<span class="dim">${cut(one.reason, 2e3)}</span></li>`)}</ul>`)}
	${why.covers.length ? card("covers", html`<ul class="covers">${why.covers.map((one) => html`<li><span class="dim">${one.role}</span> <code>${cut(one.value, 2e3)}</code></li>`)}</ul>`) : ""}
	${why.later.length ? card("later", html`<ul class="covers">${why.later.map((one) => html`<li>${state(one.decision)}${t("ask.by", { by: one.by })} ${recordLink(home(), one.at)}</li>`)}</ul>`) : ""}
	<p>${recordLink(home(), why.judged_at, t("ask.judged", { n: why.judged_at }))} · <a href=${`${runPath(home())}/at/${why.judged_at}`}>${t("pane.at")}</a></p>`;

async function answer(path, body, done) {
	const { live, digest } = now;
	set(now, { busy: true, hint: false });
	try {
		const { outcome } = await say(live.path + path, body);
		tell(live, t(`did.${outcome ? done : "later"}`));
		await live.refresh();
		look();
		const next = live.summary.waiting.find((q) => q.digest !== digest);
		go(next ? callPath(live.id, next.call) : live.to());
	} catch (error) {
		tell(live, said(error), "bad");
		live.soon(0);
	}
	set(now, { busy: false });
}
const answers = (one) => html`<h2>${t(`decide.${one.about}`)}</h2><p class="dim">${t("ask.since")} ${when(one.asked_at)}${one.expires_at ? html`<br>${t("ask.expires", { when: ago(one.expires_at) })}` : ""}</p>
	${({ in_doubt: settle, plan: sign }[one.about] ?? decide)(one, `/calls/${enc(one.call)}`)}
	${one.digest ? html`<p class="dim small">${t("ask.digest")} <code>${one.digest.slice(0, 16)}</code></p>` : ""}`;

/** Yes is never Enter. */
const notEnter = (e) => {
	if (e.key !== "Enter") return;
	e.preventDefault();
	set(now, { hint: true });
};
const hint = () => html`<p class="hint" role="status">${now.hint ? t("keys.note") : ""}</p>`;
const yes = (text, act) => html`<button type="button" class="button main yes" ?disabled=${now.busy || Date.now() < now.armed} @keydown=${notEnter} @click=${act}>${icon("check")}${text}</button>${hint()}`;
const no = (text, label, act) => html`<details ?open=${now.refusing} @toggle=${(e) => (now.refusing = e.target.open)}><summary class="button">${icon("cross")}${text}</summary>
	${form((text) => act(text("reason")), html`<label for="reason">${label}</label><textarea id="reason" rows="3"></textarea><button class="button danger" ?disabled=${now.busy}>${text}</button>`)}</details>`;

const decide = ({ digest }, path) => html`<p>${t("decide.text")}</p>${yes(t("decide.allow"), () => answer(`${path}/approve`, { digest }, "allow"))}
	${no(t("do.refuse"), t("decide.reason"), (reason) => answer(`${path}/deny`, { digest, reason }, "refuse"))}`;
function sign({ version, digest, call }, path) {
	const isInner = call.includes("/");
	const signed = (verdict, reason) => isInner ? answer(path + (reason == null ? "/approve" : "/deny"), { digest, reason }, verdict) : answer("/plan/sign", { version, verdict, reason: reason ?? "" }, verdict);
	return html`<p>${t("sign.text")} ${isInner ? "" : html`<a href=${now.live.to("/plan")}>${t("sign.see")}</a>`}</p>${yes(t("sign.yes", { n: version }), () => signed("approved"))}
		${no(t("sign.no"), t("sign.reason"), (reason) => signed(reason ? "revise" : "rejected", reason))}`;
}
const settle = ({ digest }, path) => html`<p>${t("settle.text")}</p>${form((text) => answer(`${path}/settle`, { digest, outcome: now.outcome, result: text("result") }, "settle"), html`
	<fieldset><legend class="hidden">${t("decide.in_doubt")}</legend>${["done", "not_done", "abandoned"].map((value) => choice("outcome", now.outcome === value, () => set(now, { outcome: value }), t(`settle.${value}`), t(`settle.${value}.text`)))}</fieldset>
	${now.outcome === "done" ? html`<label for="result">${t("settle.result")}</label><textarea id="result" rows="3"></textarea>` : ""}
	<button class="button main" ?disabled=${!now.outcome || now.busy} @keydown=${notEnter}>${t("settle.save")}</button>${hint()}`)}`;
