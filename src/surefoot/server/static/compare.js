// Two runs side by side, step by step.

import { html } from "./vendor/lit-html.js";
import { enc, get } from "./api.js";
import { button, crumbs, icon, loading, recordLink, runPath, skeleton, standing, trouble, set } from "./parts.js";
import { short } from "./run.js";
import { cut, t } from "./text.js";

const now = { at: -1 };
const load = loading(now, async () => ({ told: await get(`/compare?a=${enc(now.a)}&b=${enc(now.b)}`) }));
function next(by) {
	const found = [...document.querySelectorAll(".differs")];
	if (!found.length) return;
	now.at = (now.at + by + found.length) % found.length;
	found[now.at].focus();
	found[now.at].scrollIntoView({ block: "center" });
}

export const compare = {
	title: () => t("compare.title"),
	open([a, b]) {
		set(now, { a, b, at: -1, told: null });
		load();
	},
	again: load,
	keys: (key) => (key === "j" || key === "k" ? (next(key === "j" ? 1 : -1), true) : false),
	view: () => html`<div class="wide">${crumbs(t("compare.title"))}${body()}</div>`,
};

function body() {
	if (now.error) return trouble(now.error, load);
	if (!now.told) return skeleton(6, true);
	const { a, b, shared, pairs } = now.told;
	return html`<div class="sides">${[a, b].map(run)}</div>
		<div class="planbar"><p>${shared ? html`${t("compare.shared", { n: shared })} · ${recordLink(a.run_id, shared - 1)}` : t("compare.none")}</p>${button(t("compare.next"), () => next(1), "small", "down")}</div>
		${pairs.length ? html`<ol>${pairs.map((one) => html`<li class="pair ${one.differs.length ? "differs" : ""}" tabindex="-1">
			<h2>${t("rows.step", { n: one.step })} ${one.differs.map((name) => html`<span class="chip warn">${icon("odd")}${t(`compare.${name}`)}</span>`)}</h2>
			<div class="sides">${side(one.a, one.b, a.run_id)}${side(one.b, one.a, b.run_id)}</div></li>`)}</ol>` : html`<p class="dim end">${t("compare.same")}</p>`}`;
}
const run = (one) => html`<section class="card"><p class="now">${standing(one)}<a href=${runPath(one.run_id)}><code>${one.run_id}</code></a></p><p class="num dim">${short(one)}</p><p>${one.answer}</p></section>`;

function side(mine, other, id) {
	if (!mine) return html`<p class="dim">${t("compare.absent")}</p>`;
	const odd = (same) => (same || !other ? "" : "odd");
	return html`<div class="side"><p class="small">${recordLink(id, mine.seq)} <span class="dim ${odd(other?.model === mine.model)}">${mine.model}</span></p>
		${mine.reply ? html`<p><span class=${odd(other?.reply === mine.reply)}>${cut(mine.reply, 1200)}</span></p>` : ""}
		${mine.calls.map((one) => {
			const twin = other?.calls.find((call) => call.key === one.key);
			return html`<div class="made ${twin || !other ? "" : "alone"}">${["text", "verdict", "result"].map((name) => html`<p class=${name}><span class=${twin ? odd(twin[name] === one[name]) : ""}>${cut(one[name], 600)}</span></p>`)}</div>`;
		})}</div>`;
}
