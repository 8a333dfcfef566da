// The run as it stood at a record, with a slider.

import { html } from "./vendor/lit-html.js";
import { get } from "./api.js";
import { openRun } from "./live.js";
import { button, icon, later, lines, loading, notice, paint, recordLink, rowLink, said, skeleton, state, set } from "./parts.js";
import { figures, forkAt, runKeys, whole } from "./run.js";
import { t } from "./text.js";

const now = {};
const soon = later();

const load = loading(now, async (stop) => {
	const { at, live: { path } } = now;
	const since = Math.max(0, at - 40);
	const find = (address) => get(path + address, stop);
	const [seen, { rows }] = await Promise.all([find(`/state?at=${at}`), at ? find(`/rows?since=${since}&limit=${at - since}`) : { rows: [] }]);
	return { seen, rows, plan: seen.plan ? await find(`/plan?at=${at}`) : null };
});
function move(to) {
	now.at = Math.max(0, Math.min(to, now.live.total));
	soon(() => history.replaceState({}, "", now.live.to(`/at/${now.at}`)), 150);
	load();
	paint();
}
/** Goes to where the step before or after begins. */
async function step(by) {
	const { live, at: here } = now;
	const since = by > 0 ? here : Math.max(0, here - 500);
	const { rows } = await get(`${live.path}/rows?since=${since}&limit=500`);
	const begins = rows.filter((row, n) => row.step !== (rows[n - 1]?.step ?? now.seen?.step)).map((row) => row.seq + 1);
	move((by > 0 ? begins.find((one) => one > here) : begins.findLast((one) => one < here)) ?? (by > 0 ? since + 500 : since));
}

export const at = {
	title: () => t("at.title", { n: now.at, total: now.live.total }),
	open([id, place], _, isNew) {
		set(now, { live: openRun(id), at: Number(place) });
		if (isNew) set(now, { seen: null, rows: [], plan: null, error: null });
		now.live.ready.then(() => move(now.at));
	},
	close() {
		now.asking?.abort();
		soon();
	},
	again: () => now.live.load().then(load),
	keys(key) {
		const to = { ArrowLeft: now.at - 1, ArrowDown: now.at - 1, ArrowRight: now.at + 1, ArrowUp: now.at + 1, Home: 0, End: now.live.total }[key];
		if (to !== undefined) move(to);
		else if (key === "PageUp" || key === "PageDown") step(key === "PageDown" ? 1 : -1);
		else if (key === "f") forkAt(now.live, now.at);
		else return runKeys(now.live, key);
		return true;
	},
	view: () => whole(now.live, "at", body),
};

function body() {
	const { live, seen, rows, plan } = now;
	const told = at.title();
	return html`<div class="slider">${button("−", () => move(now.at - 1), "small")}
			<input type="range" min="0" max=${live.total} .value=${String(now.at)} aria-label=${t("at.slider")} aria-valuetext=${told} @input=${(e) => move(Number(e.target.value))}>
			${button("+", () => move(now.at + 1), "small")}<output class="num">${told}</output>${recordLink(live.id, Math.max(0, now.at - 1), t("at.timeline"))}
			<button class="button small main" ?disabled=${!now.at} @click=${() => forkAt(live, now.at)}>${icon("fork")}${t("at.fork")}</button></div>
		${now.error ? notice("bad", said(now.error)) : ""}
		${!seen ? skeleton(8) : html`<div class="split"><section class="rowed"><h2>${t("at.rows")}</h2><ol class="brief">${rows.toReversed().map((row) => rowLink(live.id, row))}</ol></section>
			<aside class="rail" aria-label=${t("fact.figures")}><p class="now">${state(seen.status, "big")}</p>${figures(live, seen, true)}
				${plan ? html`<h2>${t("tab.plan")} v${plan.version}</h2><ul class="opens">${plan.steps.map((one) => html`<li><a href=${live.to(`/plan?version=${plan.version}`)}><span>${one.title}</span>${state(one.status)}</a></li>`)}</ul>` : ""}
				${seen.waiting.map((one) => html`<h2>${t(".question")}</h2>${lines(one.lines)}`)}</aside></div>`}`;
}
