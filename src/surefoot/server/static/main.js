// The frame of the page: addresses and views, the bar on top, keys that hold everywhere, the line about the connection.

import { html, nothing, render } from "./vendor/lit-html.js";
import { get, hasToken, link, setToken } from "./api.js";
import { ask, closeDialog, dialog, empty, icon, key, paint } from "./parts.js";
import { language, speak, t } from "./text.js";
import { list } from "./list.js";
import { start } from "./start.js";
import { timeline } from "./timeline.js";

const later = (file, name) => async () => (await import(file))[name];
const ROUTES = [
  [/^\/$/, async (_, query) => (query.has("new") ? start : list)],
  [/^\/runs\/([^/]+)$/, async () => timeline],
  [/^\/runs\/([^/]+)\/plan$/, later("./plan.js", "plan")],
  [/^\/runs\/([^/]+)\/calls\/([^/]+)$/, later("./call.js", "call")],
  [/^\/runs\/([^/]+)\/at\/(\d+)$/, later("./at.js", "at")],
  [/^\/compare\/([^/]+)\/([^/]+)$/, later("./compare.js", "compare")],
];
const frame = { view: null, path: "", me: null, waits: 0, drawn: false };
const root = document.getElementById("page");

async function open(address, how = "push") {
  const url = new URL(address, location.origin);
  if (url.origin !== location.origin) return;
  if (how !== "back") history[how === "push" ? "pushState" : "replaceState"]({}, "", url);
  for (const [shape, find] of ROUTES) {
    const found = shape.exec(url.pathname);
    if (!found) continue;
    const view = await find(found, url.searchParams);
    const isNew = frame.view !== view || frame.path !== url.pathname;
    if (frame.view !== view) frame.view?.close?.();
    Object.assign(frame, { view, path: url.pathname });
    if (isNew && how === "push") scrollTo(0, 0);
    view.open(found.slice(1).map(decodeURIComponent), url.searchParams, { isNew, isBack: how === "back" });
    draw();
    if (isNew && frame.drawn) document.querySelector("main h1")?.focus({ preventScroll: true });
    frame.drawn = true;
    return;
  }
  frame.view = { title: () => t("gone.title"), view: () => empty("find", t("gone.title"), t("gone.page"), html`<a class="button" href="/">${t("nav.runs")}</a>`) };
  draw();
}

let due = false;
const drawSoon = () => {
  if (due) return;
  due = true;
  requestAnimationFrame(draw);
};
function draw() {
  due = false;
  const title = frame.view?.title?.() ?? "";
  document.title = `${frame.waits ? `(${frame.waits}) ` : ""}${title ? `${title} · ` : ""}surefoot`;
  render(page(), root);
  const shown = root.querySelector("dialog");
  if (shown && !shown.open) shown.showModal();
  frame.view?.drawn?.();
}

const page = () => html`
  <a class="skip" href="#main" @click=${(e) => (e.preventDefault(), document.querySelector("main h1")?.focus())}>${t("nav.skip")}</a>
  <header class="top">
    <a class="brand" href="/" aria-label=${t("nav.home")}><svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"></rect
      ><path d="M6.5 12.5l4 4 7-9"></path></svg><span>surefoot</span></a>
    <nav aria-label=${t("nav.main")}>
      <a href="/" aria-current=${frame.path === "/" && frame.view === list ? "page" : nothing}>${t("nav.runs")}</a>
      <a class="waits" href="/?waiting=1" ?hidden=${!frame.waits}>${icon("ask")}<span>${t("nav.waiting", { n: frame.waits })}</span></a>
    </nav>
    <div class="tools">
      <a class="button main" href="/?new=1">${icon("plus")}<span>${t("nav.new")}</span></a>
      <button class="plain" title=${t("nav.theme")} aria-label="${t("nav.theme")}: ${t(`theme.${theme()}`)}" @click=${turnTheme}>${icon("theme")}<span
        >${t(`theme.${theme()}`)}</span></button>
      <button class="plain" lang=${language === "zh" ? "en" : "zh"} aria-label=${language === "zh" ? "English" : "中文"} @click=${turnLanguage}
        >${language === "zh" ? "EN" : "中"}</button>
      <button class="plain" aria-label=${t("nav.keys")} title=${t("nav.keys")} @click=${showKeys}>?</button>
    </div>
  </header>
  ${connection()}
  <main id="main">${link.state === "denied" ? login() : frame.view?.view() ?? nothing}</main>
  <footer class="foot">${frame.me ? html`<span>${frame.me.name}${frame.me.tenant ? ` · ${frame.me.tenant}` : ""}</span><span>surefoot ${frame.me.version}</span>` : nothing}</footer>
  ${dialog()}`;

function connection() {
  const wait = Math.max(0, Math.ceil((link.until - Date.now()) / 1000));
  const told = link.state === "down" ? t("link.down", { n: wait }) : link.state === "slow" ? t("link.slow", { n: wait }) : "";
  return html`<div class="connection" role="status">${told ? html`<p class=${link.state}>${icon("warn")}<span>${told}</span>
    ${link.state === "down" ? html`<button @click=${retry}>${t("link.now")}</button>` : nothing}</p>` : nothing}</div>`;
}
async function retry() {
  try {
    frame.me = await get("/me");
    frame.view?.again?.();
  } catch { /* the line says it */ }
  paint();
}
setInterval(() => {
  if (link.state) drawSoon();
  if (link.state === "down" && Date.now() > link.until) {
    link.until = Date.now() + 5000;
    retry();
  }
}, 1000);

function login() {
  const enter = (event) => {
    event.preventDefault();
    setToken(event.target.elements.token.value);
    location.reload();
  };
  return html`<form class="login" @submit=${enter}>
    <h1 tabindex="-1">${hasToken() ? t("login.wrong") : t("login.title")}</h1><p>${t("login.text")}</p>
    <label for="token">${t("login.token")}</label>
    <input id="token" name="token" type="password" autocomplete="off" required spellcheck="false" placeholder="sft_…">
    <button class="button main">${t("login.enter")}</button></form>`;
}

const theme = () => document.documentElement.dataset.theme ?? "auto";
function wear(wanted) {
  if (wanted === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wanted;
}
function turnTheme() {
  const next = { auto: "light", light: "dark", dark: "auto" }[theme()];
  localStorage.setItem("surefoot.theme", next);
  wear(next);
  draw();
}
async function turnLanguage() {
  await speak(language === "zh" ? "en" : "zh");
  draw();
}

const KEYS = [["/", "find"], ["j k ↑ ↓", "move"], ["Enter", "open"], ["g r", "runs"], ["g w", "waiting"], ["n", "new"], ["t", "timeline"], ["p", "plan"],
  ["s", "slider"], ["x", "fold"], ["End", "follow"], ["q", "question"], ["r", "refuse"], ["Space", "press"], ["f", "fork"], ["c", "compare"], ["← → PgUp PgDn", "steps"], ["Esc", "close"], ["?", "keys"]];
const showKeys = () => ask(t("keys.title"), () => html`<dl class="keys">${KEYS.map(([press, what]) =>
  html`<div><dt>${press.split(" ").map(key)}</dt><dd>${t(`keys.${what}`)}</dd></div>`)}</dl><p class="dim">${t("keys.note")}</p>`);

let before = "";
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.closest?.("input:not([type=range]), textarea, select");
  if (typing) return event.key === "Escape" ? typing.blur() : undefined;
  if (document.querySelector("dialog[open]")) return;
  const pressed = before === "g" ? `g ${event.key}` : event.key;
  before = event.key === "g" ? "g" : "";
  const ours = { "?": showKeys, "g r": () => open("/"), "g w": () => open("/?waiting=1"), n: () => open("/?new=1"),
    "/": () => document.querySelector("[data-find]")?.focus() }[pressed];
  if (ours ?? frame.view?.keys?.(pressed, event)) {
    ours?.();
    event.preventDefault();
  }
});
addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (anchor.hasAttribute("download") || !anchor.getAttribute("href").startsWith("/")) return;
  event.preventDefault();
  closeDialog();
  open(anchor.href);
});
addEventListener("popstate", () => open(location.href, "back"));
addEventListener("paint", drawSoon);
addEventListener("go", ({ detail }) => (closeDialog(), open(detail.to ?? detail, detail.how)));
addEventListener("waits", ({ detail }) => ((frame.waits = detail), drawSoon()));
link.watchers.add(drawSoon);

wear(localStorage.getItem("surefoot.theme") ?? "auto");
await speak();
get("/me").then((me) => ((frame.me = me), drawSoon()), () => {});
open(location.href, "replace");
