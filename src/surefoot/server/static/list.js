// The list of runs: filters, what waits for a person, and rows that keep up with the feed.

import { html, nothing } from "./vendor/lit-html.js";
import { follow, get } from "./api.js";
import { chip, empty, go, icon, isOver, labels, paint, runPath, skeleton, standingOf, trouble, when } from "./parts.js";
import { ago, brief, dollars, number, span, t } from "./text.js";
import { allowNotices, look, mayNotify, waits } from "./waits.js";
import { Window } from "./window.js";

const FILTERS = ["status", "agent", "label", "q", "waiting", "since", "parent"];
const STATUSES = ["running", "queued", "paused", "ready", "completed", "completed_partial", "stopped", "failed", "cancelled", "interrupted", "set_aside", "damaged"];
const SINCE = { day: 86400, week: 604800, month: 2592000 };
const now = { filter: {}, runs: [], fresh: [], next: null, phase: "loading", error: null, more: false, agents: [], at: -1, feed: "live" };
const rows = new Window(64);
let stop = new AbortController();
let page = null;
let typing = 0;

const query = (more = {}) => {
  const asked = new URLSearchParams({ ...now.filter, ...more });
  if (now.filter.since) asked.set("since", String(Math.floor(Date.now() / 1000) - SINCE[now.filter.since]));
  return asked;
};
async function load() {
  page?.abort();
  page = new AbortController();
  Object.assign(now, { phase: now.runs.length ? "again" : "loading", error: null, fresh: [] });
  paint();
  try {
    const found = await get(`/runs?${query({ limit: 50 })}`, page.signal);
    Object.assign(now, { runs: found.runs, next: found.next, phase: "ready", at: -1 });
  } catch (error) {
    if (page.signal.aborted && error.name === "AbortError") return;
    Object.assign(now, { phase: "failed", error });
  }
  paint();
}
async function older() {
  if (now.more || !now.next) return;
  now.more = true;
  paint();
  try {
    const asked = page;
    const found = await get(`/runs?${query({ limit: 200, cursor: now.next })}`, asked.signal);
    if (asked === page) Object.assign(now, { runs: [...now.runs, ...found.runs], next: found.next });
  } catch { /* the line about the connection says it, and scrolling asks again */ }
  now.more = false;
  paint();
}

function fits(run) {
  const { status, agent, label, q, waiting, parent } = now.filter;
  const [name, ...value] = (label ?? "").split(":");
  const text = `${run.task}\n${run.answer}\n${run.run_id}\n${Object.entries(run.labels ?? {}).flat().join("\n")}`.toLowerCase();
  return (!status || run.status === status) && (!agent || run.agent === agent) && (!waiting || run.questions > 0)
    && (!parent || run.parent === parent) && (!label || run.labels?.[name] === value.join(":")) && (!q || text.includes(q.toLowerCase()));
}
function take({ event, data }) {
  if (event !== "summary" || now.phase === "loading") return;
  const at = now.runs.findIndex((run) => run.run_id === data.run_id);
  const held = now.fresh.findIndex((run) => run.run_id === data.run_id);
  if (at >= 0) now.runs = fits(data) ? now.runs.with(at, data) : now.runs.toSpliced(at, 1);
  else if (held >= 0) now.fresh[held] = data;
  else if (fits(data) && data.started_at >= (now.runs[0]?.started_at ?? 0)) {
    if (rows.first > 0) now.fresh = [data, ...now.fresh];
    else now.runs = [data, ...now.runs];
  }
  if (data.questions || waits.runs.some((run) => run.run_id === data.run_id)) look(400);
  paint();
}
const showFresh = () => {
  Object.assign(now, { runs: [...now.fresh, ...now.runs], fresh: [] });
  scrollTo({ top: 0, behavior: "instant" });
  paint();
};

function narrow(name, value) {
  const next = { ...now.filter, [name]: value };
  const asked = new URLSearchParams(Object.entries(next).filter(([, held]) => held));
  go({ to: `/${asked.size ? `?${asked}` : ""}`, how: "replace" });
}
const narrowSoon = (name, value) => {
  clearTimeout(typing);
  typing = setTimeout(() => narrow(name, value.trim()), 250);
};
const isNarrow = () => Object.values(now.filter).some(Boolean);

const scrolled = () => {
  if (rows.move(now.runs.length)) paint();
  if (rows.last > now.runs.length - 30) older();
};

export const list = {
  title: () => t("nav.runs"),
  open(_, asked, { isNew, isBack }) {
    const filter = Object.fromEntries(FILTERS.map((name) => [name, asked.get(name) ?? ""]).filter(([, value]) => value));
    const isOther = JSON.stringify(filter) !== JSON.stringify(now.filter);
    now.filter = filter;
    if (stop.signal.aborted || isNew) {
      stop.abort();
      stop = new AbortController();
      addEventListener("scroll", scrolled, { passive: true, signal: stop.signal });
      addEventListener("resize", scrolled, { signal: stop.signal });
      get("/agents").then((told) => ((now.agents = told.agents), paint()), () => {});
      if (!isBack || !now.runs.length || isOther) now.runs = [];
      load().then(() => follow("/feed", String(Math.max(0, ...now.runs.map((run) => run.change ?? 0))), take, (state) => ((now.feed = state), paint()), stop.signal));
      look();
    } else if (isOther) load();
  },
  close: () => stop.abort(),
  again: () => load(),
  drawn() {
    rows.list = document.querySelector(".runs");
    rows.fit(now.runs.length);
    if (rows.move(now.runs.length)) paint();
  },
  keys(key) {
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[key];
    if (!by || !now.runs.length) return false;
    now.at = Math.max(0, Math.min(now.at + by, now.runs.length - 1));
    rows.show(now.at);
    rows.move(now.runs.length);
    paint();
    requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(`.runs a[data-at="${now.at}"]`)?.focus({ preventScroll: true })));
    return true;
  },
  view: () => html`
    <div class="wide">
      <div class="headline"><h1 tabindex="-1">${t("nav.runs")}</h1>
        <span class="pulse ${now.feed}" title=${t(`feed.${now.feed}`)}>${icon("dot")}<span>${t(`feed.${now.feed}`)}</span></span></div>
      ${asks()} ${filters()}
      ${now.fresh.length ? html`<button class="fresh" @click=${showFresh}>${t("list.fresh", { n: now.fresh.length })}</button>` : nothing}
      ${found()}
      <div class="hidden" aria-live="assertive">${waits.said}</div>
    </div>`,
};

function asks() {
  if (!waits.count) return nothing;
  return html`<section class="asks" aria-labelledby="asks"><header><h2 id="asks">${icon("ask")}${t("waits.title", { n: waits.count })}</h2>
    ${mayNotify() ? html`<button class="plain" @click=${allowNotices}>${icon("bell")}${t("waits.notify")}</button>` : nothing}</header>
    <ul>${waits.runs.slice(0, 3).map((run) => {
      const asked = waits.details.get(run.run_id)?.[0];
      return html`<li><a href=${runPath(run.run_id, asked ? `/calls/${encodeURIComponent(asked.call)}` : "")}>
        ${standingOf(run)}<span class="what">${asked?.name ? html`<code>${asked.name}</code>` : nothing}<span>${asked?.lines?.[0]?.text ?? run.task}</span></span>
        <span class="dim num">${asked?.expires_at ? t("waits.expires", { when: ago(asked.expires_at) }) : when(asked?.asked_at ?? run.changed_at)}</span>${icon("right")}</a></li>`;
    })}</ul>
    ${waits.count > 3 ? html`<a class="all" href="/?waiting=1">${t("waits.all", { n: waits.count })}</a>` : nothing}</section>`;
}

const choice = (name, values, told) => html`<label class="field"><span>${t(`filter.${name}`)}</span>
  <select @change=${(e) => narrow(name, e.target.value)}><option value="" ?selected=${!now.filter[name]}>${t("filter.any")}</option>
  ${values.map((value) => html`<option value=${value} ?selected=${now.filter[name] === value}>${told(value)}</option>`)}</select></label>`;
const filters = () => html`<search class="filters sticky"><label class="field grow"><span>${t("filter.q")}</span>
    <input type="search" data-find placeholder=${t("filter.hint")} .value=${now.filter.q ?? ""} @input=${(e) => narrowSoon("q", e.target.value)}></label>
  ${choice("status", STATUSES, (value) => t(`status.${value}`))} ${choice("agent", now.agents.map((one) => one.name), String)}
  ${choice("since", Object.keys(SINCE), (value) => t(`since.${value}`))}
  <label class="field"><span>${t("filter.label")}</span><input class="short" placeholder="team:web" .value=${now.filter.label ?? ""}
    @input=${(e) => narrowSoon("label", e.target.value)}></label>
  <button class="toggle" aria-pressed=${now.filter.waiting ? "true" : "false"} @click=${() => narrow("waiting", now.filter.waiting ? "" : "1")}>${icon("ask")}${t("filter.waiting")}</button>
  ${now.filter.parent ? html`<button class="toggle" aria-pressed="true" @click=${() => narrow("parent", "")}>${t("filter.parent", { id: now.filter.parent })}${icon("cross")}</button>` : nothing}</search>`;

function found() {
  if (now.phase === "loading") return skeleton(8, "tall");
  if (now.phase === "failed") return trouble(now.error, load);
  if (!now.runs.length && isNarrow()) return empty("find", t("list.none.title"), t("list.none.text"), html`<a class="button" href="/">${t("list.none.clear")}</a>`);
  if (!now.runs.length) return empty("play", t("list.empty.title"), t("list.empty.text"), html`<a class="button main" href="/?new=1">${t("nav.new")}</a>`);
  const shown = now.runs.slice(rows.first, rows.last);
  return html`<div class="heads" aria-hidden="true"><span>${t("col.status")}</span><span>${t("col.task")}</span><span>${t("col.calls")}</span><span>${t("col.tokens")}</span>
      <span>${t("col.cost")}</span><span>${t("col.took")}</span><span>${t("col.changed")}</span></div>
    <ol class="runs ${now.phase === "again" ? "stale" : ""}" aria-label=${t("nav.runs")}>${shown.map((run, at) => row(run, rows.first + at))}</ol>
    ${now.more ? skeleton(2, "tall") : nothing}
    ${now.next ? html`<p class="end"><button class="button" @click=${older}>${t("list.older")}</button></p>` : html`<p class="end dim">${t("list.end", { n: now.runs.length })}</p>`}`;
}

const fact = (name, text) => html`<span class="num"><span class="hidden">${t(`col.${name}`)} </span>${text}</span>`;
const row = (run, at) => html`<li><a href=${runPath(run.run_id)} data-at=${at}>
  ${standingOf(run)}
  <span class="what"><span class="task">${run.task || t("list.untold")}</span><span class="sub">
    ${run.agent ? html`<b>${run.agent}</b>` : nothing}<code>${run.run_id}</code>${run.waits_for === "agent" ? chip(t("run.unserved"), "warn") : nothing}
    ${run.reason ? chip(run.reason.replaceAll("_", " ")) : nothing}${labels(run.labels)}${run.answer && isOver(run) ? html`<span class="answer">${run.answer}</span>` : nothing}</span></span>
  ${fact("calls", number(run.calls))} ${fact("tokens", brief(run.usage.input_tokens + run.usage.output_tokens))}
  ${fact("cost", dollars(run.usage.cost_usd))} ${fact("took", span(run.elapsed_s))}
  <span class="num changed">${when(run.changed_at)}</span></a></li>`;
