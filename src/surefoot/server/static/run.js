// What every view of a run has: its head, the ways to its other views, what can be done with it, and the rail of figures.

import { html, nothing } from "./vendor/lit-html.js";
import { bytes, get, say, send } from "./api.js";
import { ask, chip, closeDialog, go, icon, isOver, labels, meter, notice, paint, runPath, standingOf, state, took, trouble, when } from "./parts.js";
import { brief, cut, dollars, number, percent, span, t } from "./text.js";

const done = { said: "", tone: "good", id: "" };
export function told(live, said, tone = "good") {
  Object.assign(done, { said, tone, id: live.id });
  paint();
}

export function head(live, place) {
  const run = live.summary;
  const tab = (name, path, text) => html`<a href=${runPath(live.id, path)} aria-current=${place === name ? "page" : nothing}>${text}</a>`;
  const asked = run.waiting?.[0];
  return html`<header class="runhead">
    <p class="crumbs"><a href="/">${t("nav.runs")}</a> / <code>${live.id}</code>${run.parent ? html` <span class="dim">${t("run.fork")} <a href=${runPath(run.parent)}><code>${run.parent}</code></a></span>` : nothing}</p>
    <h1 tabindex="-1" title=${run.task}>${cut(run.task || t("list.untold"), 220)}</h1>
    <div class="under"><span aria-live="polite" class="now">${standingOf(run, "big")}${run.reason ? chip(run.reason.replaceAll("_", " ")) : nothing}</span>
      ${run.agent ? html`<span class="dim">${run.agent}</span>` : nothing}${labels(run.labels)}
      <span class="dim">${t("run.started")} ${when(run.started_at)}</span>${pulse(live)}</div>
    <div class="bar"><nav class="tabs" aria-label=${t("run.views")}>${tab("timeline", "", t("tab.timeline"))}${tab("plan", "/plan", t("tab.plan"))}
      ${asked ? html`<a class="asksme" href=${callPath(live.id, asked)} aria-current=${place === "call" ? "page" : nothing}>${icon("ask")}${t("tab.question", { n: run.waiting.length })}</a>`
        : place === "call" ? html`<a href="" aria-current="page">${t("tab.call")}</a>` : nothing}
      ${tab("at", `/at/${live.total}`, t("tab.at"))}</nav>${actions(live)}</div>
  </header>${states(live, place)}`;
}
export const callPath = (id, asked) => runPath(id, `/calls/${encodeURIComponent(asked.call)}`);
const pulse = (live) => isOver(live.summary) || !live.stream || live.stream === "over" ? nothing
  : html`<span class="pulse ${live.stream}">${icon("dot")}<span>${live.behind > 200 ? t("feed.behind", { n: live.behind }) : t(`feed.${live.stream}`)}</span></span>`;

function states(live, place) {
  const { summary: run } = live;
  const asked = run.waiting ?? [];
  return html`
    ${done.id === live.id && done.said ? html`<div role="status">${notice(done.tone, done.said)}</div>` : nothing}
    ${run.damaged ? notice("bad", t("damaged.title", { at: run.damaged.at }), `${run.damaged.why}. ${t("damaged.text")}`) : nothing}
    ${run.waits_for === "agent" ? notice("warn", t("unserved.title", { agent: run.agent || "?" }), t("unserved.text")) : nothing}
    ${run.status === "interrupted" && run.waits_for !== "agent" ? notice("warn", t("interrupted.title"), t("interrupted.text"),
      html`<button class="button" @click=${() => resume(live)}>${t("do.resume")}</button>`) : nothing}
    ${place !== "call" && asked.length ? html`<div class="notice asks">${icon("ask")}<div><strong>${t(`asked.${asked[0].about}`, { name: asked[0].name })}</strong>
      <p>${asked[0].lines[0]?.text}</p></div><a class="button main" href=${callPath(live.id, asked[0])}>${t("asked.read")}</a></div>` : nothing}
    <div class="hidden" aria-live="assertive">${asked.length ? t(`asked.${asked[0].about}`, { name: asked[0].name }) : ""}</div>`;
}

/** The whole view of a run, or what stands in its stead while it is not there. */
export function whole(live, place, body) {
  if (live.error) return html`<div class="wide">${trouble(live.error, () => live.load())}</div>`;
  if (!live.summary) return html`<div class="wide"><h1 tabindex="-1" class="hidden">${t("loading")}</h1><div class="skeleton page" role="status" aria-label=${t("loading")}>${Array.from({ length: 12 }, () => html`<i></i>`)}</div></div>`;
  return html`<div class="wide">${head(live, place)}${body()}</div>`;
}

const word = async (live, work, said) => {
  closeDialog();
  try {
    await work();
    told(live, said);
    live.soon(100);
  } catch (error) {
    told(live, error.detail || error.message, "bad");
  }
};
const resume = (live) => word(live, () => send(`${live.path}/resume`, {}), t("did.resume"));
const withReason = (live, key, path, field, must) => ask(t(`do.${key}`), () => html`<form class="form" @submit=${(event) => {
  event.preventDefault();
  const text = event.target.elements.text.value.trim();
  word(live, () => say(live.id, path, text || must ? { [field]: text } : {}), t(`did.${key}`));
}}><p>${t(`${key}.text`)}</p><label for="text">${t(`${key}.label`)}</label><textarea id="text" name="text" rows="3" ?required=${must}></textarea>
  <footer><button type="button" class="button" @click=${closeDialog}>${t("cancelled.back")}</button><button class="button main">${t(`do.${key}`)}</button></footer></form>`);

const save = (live, form) => word(live, async () => {
  const address = URL.createObjectURL(await bytes(`${live.path}/export?form=${form}`));
  Object.assign(document.createElement("a"), { href: address, download: `${live.id}.${form === "otlp" ? "otlp.json" : form}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}, t("did.save"));
const verify = (live) => word(live, async () => {
  const found = await get(`${live.path}/verify`);
  const isGood = found.chain === "ok" && found.replay === "ok";
  const why = found.chain === "ok" ? t("verify.replay", { at: found.replay.at ?? 0 }) : String(found.chain);
  ask(t("do.verify"), () => notice(isGood ? "good" : "bad", t(isGood ? "verify.good" : "verify.bad"), isGood ? t("verify.text", { n: found.records }) : why));
}, "");
const drop = (live) => ask(t("do.delete"), () => html`<p>${t("delete.text")}</p><footer class="foots"><button class="button" @click=${closeDialog}>${t("cancelled.back")}</button>
  <button class="button danger" @click=${() => word(live, async () => (await send(live.path, {}, "DELETE"), go("/")), "")}>${t("do.delete")}</button></footer>`);

export const forkAt = (live, at) => ask(t("do.fork"), () => html`<form class="form" @submit=${async (event) => {
  event.preventDefault();
  const place = Number(event.target.elements.at.value);
  await word(live, async () => {
    const { body } = await send(`${live.path}/fork`, { at: place });
    go(runPath(body.run_id));
  }, "");
}}><p>${t("fork.text", { n: live.total })}</p><label for="at">${t("fork.at")}</label><input id="at" name="at" type="number" min="1" max=${live.total} .value=${String(at)} required>
  <footer><button type="button" class="button" @click=${closeDialog}>${t("cancelled.back")}</button><button class="button main">${icon("fork")}${t("do.fork")}</button></footer></form>`);

export async function compareWith(live) {
  const near = [];
  const show = () => ask(t("do.compare"), () => html`<form class="form" @submit=${(event) => {
    event.preventDefault();
    go(`/compare/${encodeURIComponent(live.id)}/${encodeURIComponent(event.target.elements.other.value.trim())}`);
  }}><p>${t("compare.pick")}</p>
    ${near.length ? html`<ul class="picks">${near.map((run) => html`<li><a href="/compare/${encodeURIComponent(live.id)}/${encodeURIComponent(run.run_id)}">${standingOf(run)}<code>${run.run_id}</code><span>${cut(run.task, 60)}</span></a></li>`)}</ul>` : nothing}
    <label for="other">${t("compare.other")}</label><input id="other" name="other" required spellcheck="false" autocomplete="off">
    <footer><button class="button main">${icon("swap")}${t("do.compare")}</button></footer></form>`);
  show();
  const parent = live.summary.parent;
  const [forks, origin] = await Promise.all([get(`/runs?parent=${encodeURIComponent(live.id)}&limit=5`).catch(() => ({ runs: [] })), parent ? get(runPath(parent)).catch(() => null) : null]);
  near.push(...(origin ? [origin] : []), ...forks.runs);
  if (near.length && document.querySelector("dialog")) show();
}

function actions(live) {
  const run = live.summary;
  const item = (name, act, from) => html`<button class="item" @click=${(e) => (e.target.closest("details").removeAttribute("open"), act())}>${icon(from)}${t(`do.${name}`)}</button>`;
  return html`<div class="actions">
    <button class="button small" @click=${() => forkAt(live, live.total)}>${icon("fork")}<span>${t("do.fork")}</span></button>
    <button class="button small" @click=${() => compareWith(live)}>${icon("swap")}<span>${t("do.compare")}</span></button>
    <details class="menu" @keydown=${(e) => e.key === "Escape" && (e.currentTarget.removeAttribute("open"), e.currentTarget.firstElementChild.focus())}>
      <summary class="button small">${t("do.more")}${icon("down")}</summary><div class="items">
      ${isOver(run) ? nothing : item("note", () => withReason(live, "note", "/notes", "text", true), "say")}
      ${isOver(run) && run.status !== "stopped" && run.status !== "failed" ? nothing : item("resume", () => resume(live), "play")}
      ${isOver(run) ? nothing : item("cancel", () => withReason(live, "cancel", "/cancel", "reason", false), "slash")}
      ${["jsonl", "md", "html"].map((form) => html`<button class="item" @click=${() => save(live, form)}>${icon("save")}${t("do.save", { form: t(`form.${form}`) })}</button>`)}
      ${item("verify", () => verify(live), "check")}${item("delete", () => drop(live), "cross")}</div></details></div>`;
}

/** Keys that mean the same in every view of a run. */
export function runKeys(live, key) {
  const asked = live.summary?.waiting?.[0];
  const act = { t: () => go(runPath(live.id)), p: () => go(runPath(live.id, "/plan")), s: () => go(runPath(live.id, `/at/${live.total}`)), f: () => forkAt(live, live.total),
    c: () => compareWith(live), q: asked && (() => go(callPath(live.id, asked))) }[key];
  if (live.summary) act?.();
  return Boolean(live.summary && act);
}

export function figures(live, at = null) {
  const run = live.summary;
  const now = at ?? live.state;
  const usage = now?.usage ?? run.usage;
  const fact = (name, value, more = "") => html`<div><dt>${t(`fact.${name}`)}</dt><dd>${value}${more ? html`<small>${more}</small>` : nothing}</dd></div>`;
  return html`<dl class="facts">
    ${fact("tokens", brief(usage.input_tokens + usage.output_tokens), t("fact.inout", { in: brief(usage.input_tokens), out: brief(usage.output_tokens) }))}
    ${fact("cost", dollars(usage.cost_usd), usage.cached_tokens ? t("fact.cached", { n: percent(usage.cached_tokens / Math.max(usage.input_tokens, 1)) }) : "")}
    ${fact("time", took(now?.elapsed_s ?? run.elapsed_s))}${fact("calls", number(run.calls), t("fact.requests", { n: run.requests }))}</dl>
    ${now?.context ? meter(t("fact.context"), now.context.used, now.context.window, `${brief(now.context.used)} / ${brief(now.context.window)}`) : nothing}
    ${(now?.budget ?? []).map((one) => meter(t(`budget.${one.name}`) === `budget.${one.name}` ? one.name.replaceAll("_", " ") : t(`budget.${one.name}`), one.used, one.limit,
      one.limit ? `${amount(one.name, one.used)} / ${amount(one.name, one.limit)}` : amount(one.name, one.used)))}
    ${now?.open?.length ? html`<h3>${t("fact.open")}</h3><ul class="opens">${now.open.map((one) => html`<li><a href=${runPath(live.id, `/calls/${encodeURIComponent(one.id)}`)}><code>${one.name}</code>${state(one.status in { waiting: 1, running: 1, in_doubt: 1 } ? one.status : "pending")}</a></li>`)}</ul>` : nothing}
    ${Object.entries(run.models ?? {}).map(([role, model]) => html`<p class="model"><span class="dim">${role}</span> <code>${model}</code></p>`)}
    ${run.answer && at === null ? html`<h3>${t("fact.answer")}</h3><p class="answer">${run.answer}</p>` : nothing}`;
}
const amount = (name, value) => (name.includes("cost") ? dollars(value) : /time|elapsed|_s$|seconds/.test(name) ? span(value) : brief(value));
