// The frame: addresses, the bar on top, keys.

import { html, render } from "./vendor/lit-html.js";
import { get, hasToken, link, setToken } from "./api.js";
import { keepRun } from "./live.js";
import { list } from "./list.js";
import { ask, dialog, form, icon } from "./parts.js";
import { language, speak, t } from "./text.js";
import { timeline } from "./timeline.js";
import { look, waits } from "./waits.js";
import "./rows.js";
import "./run.js";
import "./window.js";

const later = (name) => async () => (await import(`./${name}.js`))[name];
const ROUTES = [
	[/^\/$/, (asked) => (asked.has("new") ? later("start")() : list)],
	[/^\/runs\/([^/]+)$/, () => timeline],
	[/^\/runs\/([^/]+)\/plan$/, later("plan")],
	[/^\/runs\/([^/]+)\/calls\/([^/]+)$/, later("call")],
	[/^\/runs\/([^/]+)\/at\/(\d+)$/, later("at")],
	[/^\/compare\/([^/]+)\/([^/]+)$/, later("compare")],
];
const frame = { view: null, path: "", me: null };
const main = () => document.querySelector("main h1");

async function open(address, how = "push") {
	const url = new URL(address, location.origin);
	if (how === "push") history.pushState({}, "", url);
	if (how === "replace") history.replaceState({}, "", url);
	const [shape, find] = ROUTES.find(([one]) => one.test(url.pathname)) ?? ROUTES[0];
	const view = await find(url.searchParams);
	const isNew = frame.view !== view || frame.path !== url.pathname;
	const isFirst = !frame.view;
	if (frame.view !== view) frame.view?.close?.();
	Object.assign(frame, { view, path: url.pathname });
	if (isNew && how === "push") scrollTo(0, 0);
	keepRun(url.pathname);
	view.open((shape.exec(url.pathname) ?? []).slice(1).map(decodeURIComponent), url.searchParams, isNew);
	await worded;
	draw();
	if (isNew && !isFirst) main()?.focus({ preventScroll: true });
}

let due = true;
function draw() {
	due = false;
	const title = frame.view?.title() ?? "";
	document.title = `${waits.count ? `(${waits.count}) ` : ""}${title ? `${title} · ` : ""}surefoot`;
	render(page(), document.getElementById("page"));
	const shown = document.querySelector("dialog");
	if (shown && !shown.open) shown.showModal();
	frame.view?.drawn?.();
}
const drawSoon = () => {
	due ||= (document.hidden ? setTimeout : requestAnimationFrame)(draw);
};

const tool = (name, act, text) => html`<button class="plain" aria-label=${name} title=${name} @click=${act}>${text}</button>`;
const page = () => html`
	<a class="skip" href="#main" @click=${(e) => (e.preventDefault(), main()?.focus())}>${t("nav.skip")}</a>
	<header class="top">
		<a class="brand" href="/"><svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"></rect><path d="M6.5 12.5l4 4 7-9"></path></svg><span>surefoot</span></a>
		<nav aria-label=${t("nav.main")}>
			<a href="/" aria-current=${frame.view === list ? "page" : "false"}>${t("nav.runs")}</a>
			${waits.count ? html`<a class="waits" href="/?waiting=1">${icon("ask")}${waits.count}<span> ${t("nav.waiting")}</span></a>` : ""}
		</nav>
		<a class="button main" href="/?new=1">${icon("plus")}<span>${t("nav.new")}</span></a>
		${tool(`${t("nav.theme")}: ${t(`theme.${theme()}`)}`, turnTheme, html`${icon("half")}<span>${t(`theme.${theme()}`)}</span>`)}
		${language === "zh" ? tool("English", () => turn("en"), "EN") : tool("中文", () => turn("zh"), "中")}
		${tool(t("keys.title"), showKeys, "?")}
	</header>
	${connection()}
	<main id="main">${link.state === "denied" ? login() : frame.view?.view()}</main>
	<footer class="foot">${frame.me ? `${frame.me.name}${frame.me.tenant && ` · ${frame.me.tenant}`} · surefoot ${frame.me.version}` : ""}</footer>
	${dialog()}`;

const connection = () => html`<div role="status">${["down", "slow"].includes(link.state) ? html`<p class="connection ${link.state}">${icon("warn")}
	<span>${t(`link.${link.state}`, { n: Math.max(0, Math.ceil((link.until - Date.now()) / 1000)) })}</span>
	${link.state === "down" ? html`<button @click=${retry}>${t(".again")}</button>` : ""}</p>` : ""}</div>`;
async function retry() {
	link.until = Date.now() + 5000;
	frame.me = await get("/me").catch(() => frame.me);
	drawSoon();
}
setInterval(() => {
	if (link.state) drawSoon();
	if (link.state === "down" && Date.now() > link.until) retry();
}, 1000);

const login = () => form((text) => {
	setToken(text("token"));
	location.reload();
}, html`<h1 tabindex="-1">${t(hasToken() ? "login.wrong" : "login.title")}</h1><p>${t("login.text")}</p><label for="token">${t("login.token")}</label>
	<input id="token" type="password" autocomplete="off" required placeholder="sft_…"><footer><button class="button main">${t("login.enter")}</button></footer>`, "narrow");

const theme = () => document.documentElement.dataset.theme;
const wear = (name) => (document.documentElement.dataset.theme = name);
function turnTheme() {
	localStorage.setItem("surefoot.theme", wear({ auto: "light", light: "dark", dark: "auto" }[theme()]));
	draw();
}
const turn = (wanted) => speak(wanted).then(draw);

const KEYS = "/ filter.q,j_k keys.move,Enter keys.open,x keys.fold,End keys.follow,t tab.timeline,p tab.plan,q .question,s tab.at,←_→_PgUp_PgDn keys.steps,r do.refuse,Space keys.press,f do.fork,c do.compare,l nav.runs,w filter.waiting,n nav.new,Esc .close";
const showKeys = () => ask(t("keys.title"), () => html`<dl class="keys">${KEYS.split(",").map((one) => one.split(" ")).map(([keys, what]) =>
	html`<div><dt>${keys.split("_").map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${t(what)}</dd></div>`)}</dl><p class="dim">${t("keys.note")}</p>`);

addEventListener("keydown", (e) => {
	if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog")) return;
	if (e.target.matches("input:not([type=range], [type=radio]), textarea, select")) return e.key === "Escape" ? e.target.blur() : undefined;
	const ours = { "?": showKeys, l: () => open("/"), w: () => open("/?waiting=1"), n: () => open("/?new=1"), "/": () => document.querySelector("[data-find]")?.focus() }[e.key];
	if (ours || frame.view.keys?.(e.key, e)) e.preventDefault();
	ours?.();
});
addEventListener("click", (e) => {
	const anchor = e.target.closest("a[href^='/']");
	if (!anchor || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey) return;
	e.preventDefault();
	ask();
	open(anchor.href);
});
addEventListener("popstate", () => open(location.href, "back"));
for (const kind of ["scroll", "resize"]) addEventListener(kind, (e) => frame.view?.scrolled?.(e), { passive: true });
addEventListener("paint", drawSoon);
addEventListener("visibilitychange", draw);
addEventListener("back", () => frame.view?.again?.());
addEventListener("run", () => frame.view?.changed?.());
addEventListener("go", ({ detail: { to, how } }) => open(to, how));

wear(localStorage.getItem("surefoot.theme") ?? "auto");
const worded = speak();
open(location.href, "replace").then(() => (setTimeout(retry, 500), look(500)));
