// The form that starts a run.

import { html } from "./vendor/lit-html.js";
import { get, send } from "./api.js";
import { chip, choice, crumbs, empty, form, go, icon, loading, notice, runPath, said, set, skeleton, trouble } from "./parts.js";
import { t } from "./text.js";

const now = { agents: null, agent: "", error: null, fault: null, busy: false, task: "", labels: "" };
const load = loading(now, () => get("/agents"));

export const start = {
	title: () => t("nav.new"),
	open: load,
	again: load,
	view: () => html`<div class="narrow">${crumbs(t("nav.new"))}${body()}</div>`,
};

const pairs = (text) => text.split(",").filter((one) => one.trim()).map((one) => one.split(/[:=](.*)/s, 2).map((part) => part.trim())).map(([name, value = ""]) => [name, value]);
async function begin() {
	set(now, { busy: true, fault: null });
	try {
		const { run_id: id } = await send("/runs", { agent: now.agent, task: now.task, labels: Object.fromEntries(pairs(now.labels)) });
		set(now, { task: "", labels: "" });
		go(runPath(id));
	} catch (error) {
		now.fault = error;
	}
	set(now, { busy: false });
}

function body() {
	if (now.error) return trouble(now.error, load);
	if (!now.agents) return skeleton(4, true);
	if (!now.agents.length) return empty("play", "start.none");
	if (!now.agents[1]) now.agent = now.agents[0].name;
	const held = now.agents.find((one) => one.name === now.agent);
	return form(begin, html`	<fieldset><legend>${t("start.agent")}</legend>${now.agents.map((one) => choice("agent", now.agent === one.name, () => set(now, { agent: one.name }), one.name, one.description))}</fieldset>
		${held ? html`<p class="dim">${held.reasoner} · ${Object.values(held.models).join(", ")}</p><p>${held.tools.map((one) => chip(`${one.name}: ${one.effect}`, one.effect === "read" ? "" : "warn"))}</p>` : ""}
		<label for="task">${t("start.task")}</label>
		<textarea id="task" rows="6" required aria-describedby="note" .value=${now.task} @input=${(e) => (now.task = e.target.value)}></textarea><p class="dim" id="note">${t("start.note")}</p>
		<label for="labels">${t("start.labels")}</label><input id="labels" placeholder="team: web, ticket: 812" .value=${now.labels} @input=${(e) => (now.labels = e.target.value)}>
		${now.fault ? notice("bad", now.fault.message, now.fault.retry ? t("start.retry", { n: now.fault.retry }) : said(now.fault)) : ""}
		<footer><button class="button main" ?disabled=${now.busy}>${icon("play")}${t(now.busy ? "start.busy" : "start.go")}</button></footer>`, "start");
}
