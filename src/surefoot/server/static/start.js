// The form that starts a run.

import { html, nothing } from "./vendor/lit-html.js";
import { get, send } from "./api.js";
import { chip, empty, go, icon, notice, paint, runPath, skeleton, trouble } from "./parts.js";
import { t } from "./text.js";

const now = { agents: null, agent: "", error: null, fault: null, busy: false, task: "", labels: "" };

export const start = {
  title: () => t("nav.new"),
  open() {
    Object.assign(now, { error: null, fault: null, busy: false });
    load();
  },
  again: () => load(),
  view: () => html`<div class="narrow"><p class="crumbs"><a href="/">${t("nav.runs")}</a></p><h1 tabindex="-1">${t("nav.new")}</h1>${form()}</div>`,
};

async function load() {
  try {
    now.agents = (await get("/agents")).agents;
    if (now.agents.length === 1) now.agent = now.agents[0].name;
    now.error = null;
  } catch (error) {
    now.error = error;
  }
  paint();
}

function read(text) {
  const pairs = text.split(/[,\n]/).map((one) => one.trim()).filter(Boolean).map((one) => [one.slice(0, one.indexOf(":")).trim(), one.slice(one.indexOf(":") + 1).trim()]);
  return pairs.every(([name]) => name) ? Object.fromEntries(pairs) : null;
}

async function begin(event) {
  event.preventDefault();
  const labels = read(now.labels);
  if (!labels) {
    now.fault = { title: t("start.labels.bad") };
    return paint();
  }
  Object.assign(now, { busy: true, fault: null });
  paint();
  try {
    const { body } = await send("/runs", { agent: now.agent, task: now.task, ...(Object.keys(labels).length && { labels }) });
    Object.assign(now, { task: "", labels: "" });
    go(runPath(body.run_id));
  } catch (error) {
    now.fault = { title: error.message, text: error.retry ? t("start.retry", { n: error.retry }) : error.detail };
  }
  now.busy = false;
  paint();
}

function form() {
  if (now.error) return trouble(now.error, load);
  if (!now.agents) return skeleton(4, "tall");
  if (!now.agents.length) return empty("play", t("start.none"), t("start.none.text"));
  const held = now.agents.find((one) => one.name === now.agent);
  return html`<form class="form start" @submit=${begin}>
    <fieldset class="agents"><legend>${t("start.agent")}</legend>${now.agents.map((one) => html`<label class="choice"><input type="radio" name="agent" value=${one.name} required
      .checked=${now.agent === one.name} @change=${() => ((now.agent = one.name), paint())}><span><b>${one.name}</b><small>${one.description}</small></span></label>`)}</fieldset>
    ${held ? html`<details class="tools-of"><summary>${t("start.tools", { n: held.tools.length })} · ${held.reasoner} · ${Object.values(held.models).join(", ")}</summary>
      <ul>${held.tools.map((one) => html`<li><code>${one.name}</code>${chip(one.effect, one.effect === "read" ? "" : "warn")}<span class="dim">${one.description}</span></li>`)}</ul></details>` : nothing}
    <label for="task">${t("start.task")}</label><p class="dim" id="task-note">${t("start.task.text")}</p>
    <textarea id="task" rows="6" required aria-describedby="task-note" .value=${now.task} @input=${(e) => (now.task = e.target.value)}></textarea>
    <label for="labels">${t("start.labels")}</label><input id="labels" placeholder="team: web, ticket: 812" .value=${now.labels} @input=${(e) => (now.labels = e.target.value)}>
    ${now.fault ? notice("bad", now.fault.title, now.fault.text) : nothing}
    <footer><button class="button main" ?disabled=${now.busy}>${icon("play")}${t(now.busy ? "start.busy" : "start.go")}</button></footer></form>`;
}
