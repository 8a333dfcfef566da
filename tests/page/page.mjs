// The page in a real browser against the stand-in: every view under axe, every action by keyboard, hostile texts, budgets.
// `node page.mjs [part …]` runs parts: axe, keys, states, hostile, large.

import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { browse, checks, must, serve } from "./browser.mjs";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const PAYLOADS = JSON.parse(readFileSync(new URL("payloads.json", import.meta.url), "utf8")).map((one) => (typeof one === "string" ? one : one[0].repeat(one[1])));
/** How much slower a machine with other work may be: its load for each processor. */
const SLACK = Math.max(1, loadavg()[0] / cpus().length);
const VIEWS = ["/", "/?waiting=1", "/?q=zzzz", "/?new=1", "/runs/suppliers-q3", "/runs/suppliers-q3?r=6", "/runs/live-audit", "/runs/ledger-2026", "/runs/vendor-mail/calls/c2", "/runs/table-for-six/calls/c1",
  "/runs/move-servers/calls/plan", "/runs/lisbon/plan", "/runs/lisbon/plan?version=2&beside=1", "/runs/audit-2025", "/runs/nightly-report", "/runs/suppliers-q3/at/20", "/compare/suppliers-q3/suppliers-q3-fork", "/runs/nothing"];
const quiet = (page) => page.waitForFunction(() => !document.querySelector(".skeleton") && document.querySelector("main h1, main h2"), null, { timeout: 20000 });

async function axe() {
  const server = await serve();
  const { page, said, close } = await browse();
  const bad = [];
  let passed = 0;
  for (const [theme, width] of [["light", 1280], ["dark", 1280], ["dark", 320]]) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 800 });
    for (const path of VIEWS) {
      await page.goto(server.origin + path);
      await quiet(page).catch(() => {
        throw new Error(`${path} does not come to rest`);
      });
      await page.waitForTimeout(750);
      await page.evaluate(AXE);
      const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      passed += found.passes.length;
      for (const one of found.violations) bad.push(`${one.impact} ${one.id} in ${path} (${theme}, ${width}): ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary.split("\n")[1]}`).join(" | ")}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      must(wide <= 0, `${path} is ${wide} px too wide at ${width}`);
    }
  }
  await close();
  server.stop();
  const serious = bad.filter((one) => /^(serious|critical)/.test(one));
  must(!serious.length, serious.join("\n"));
  must(!said.length, said.join("\n"));
  return `${VIEWS.length * 3} views, ${passed} rules passed, 0 serious, ${bad.length} lesser${bad.map((one) => `\n     ${one}`).join("")}`;
}

async function keys() {
  const server = await serve();
  const { page, said, close } = await browse();
  const press = async (...names) => {
    for (const name of names) await page.keyboard.press(name);
  };
  const at = (path) => page.waitForURL((url) => path.test(url.pathname + url.search), { timeout: 5000 });
  const focused = () => page.evaluate(() => `${document.activeElement.tagName} ${document.activeElement.textContent.trim().slice(0, 60)}`);
  const tabTo = async (what) => {
    for (let n = 0; n < 60; n += 1) {
      if (what.test(await focused())) return;
      await press("Tab");
    }
    throw new Error(`no focus on ${what}; it is on ${await focused()}`);
  };
  await page.goto(`${server.origin}/`);
  await quiet(page);
  await press("?");
  await page.waitForSelector("dialog[open]");
  await press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await press("w");
  await at(/waiting=1/);
  await page.waitForFunction(() => document.querySelectorAll(".runs li").length === 3);
  await press("j");
  await page.waitForFunction(() => document.activeElement.matches(".runs a"));
  await press("Enter");
  await at(/^\/runs\/vendor-mail$/);
  await page.waitForSelector(".rows li .text");
  await press("q");
  await at(/calls\/c2/);
  await page.waitForSelector(".yes:not([disabled])");
  must((await page.textContent("main")).includes("billing-updates@vendor-payments.example"), "the question shows the value");
  must(!(await page.evaluate(() => document.activeElement.matches("button"))), "no button has the focus when a question opens");
  await tabTo(/^BUTTON Allow exactly this/);
  await press("Enter");
  await page.waitForTimeout(300);
  must(!(await server.steer("")).length, "Enter has approved");
  must((await page.textContent(".hint")).length > 0, "Enter says that it is not enough");
  await press("r");
  await page.waitForFunction(() => document.activeElement.id === "reason");
  await page.keyboard.type("the address is not ours");
  await press("Tab", "Space");
  await at(/^\/runs\/vendor-mail$/);
  const words = await server.steer("");
  must(words.length === 1 && words[0].word === "deny" && words[0].body.reason === "the address is not ours" && words[0].body.digest.length === 64, `said: ${JSON.stringify(words)}`);
  await press("l");
  await at(/^\/$/);
  await page.waitForSelector(".runs li");
  for (let n = 0; n < 8 && !/suppliers-q3(?!-fork)/.test(await page.evaluate(() => document.activeElement.getAttribute("href") ?? "")); n += 1) {
    await press("j");
    await page.waitForTimeout(80);
  }
  await press("Enter");
  await at(/^\/runs\/suppliers-q3$/);
  await page.waitForSelector(".rows li .text");
  await press("j", "j", "Enter");
  await page.waitForSelector(".pane");
  await press("Escape");
  await page.waitForSelector(".pane", { state: "detached" });
  await press("s");
  await at(/\/at\/24/);
  await page.waitForSelector(".slider");
  await press("PageUp");
  await page.waitForTimeout(400);
  await press("ArrowLeft");
  await page.waitForTimeout(400);
  const place = Number(/\/at\/(\d+)/.exec(page.url())[1]);
  must(place < 24 && place > 5, `the slider stands at ${place}`);
  await press("f");
  await page.waitForSelector("dialog[open]");
  await tabTo(/^BUTTON Fork/);
  await press("Enter");
  await at(/^\/runs\/suppliers-q3-f/);
  await page.waitForFunction(() => document.querySelector(".crumbs a[href='/runs/suppliers-q3']"));
  await press("c");
  await page.waitForSelector(".near");
  await tabTo(/^A .*suppliers-q3/);
  await press("Enter");
  await at(/^\/compare\//);
  await page.waitForSelector(".pair");
  await press("n");
  await at(/new=1/);
  await page.waitForSelector("input[name=agent]");
  await tabTo(/^INPUT/);
  await press("Space", "Tab", "Tab");
  await tabTo(/^TEXTAREA/);
  await page.keyboard.type("Say hello.");
  await tabTo(/^BUTTON Start/);
  await press("Enter");
  await at(/^\/runs\/run-/);
  await close();
  server.stop();
  must(!said.length, said.join("\n"));
  return `fork at record ${place}`;
}

async function states() {
  const server = await serve("--token", "sft_good");
  const { page, said, close } = await browse();
  const text = (what) => page.waitForFunction((one) => document.body.innerText.includes(one), what, { timeout: 12000 });
  await page.goto(`${server.origin}/`);
  await text("A token, please");
  await page.fill("#token", "sft_wrong");
  await page.keyboard.press("Enter");
  await text("This token is not valid");
  await page.goto(`${server.origin}/#t=sft_good`);
  await page.reload();
  await page.waitForSelector(".runs li");
  must(!page.url().includes("sft_"), "the token stays in the address");
  await page.goto(`${server.origin}/runs/live-audit`);
  await text("Working");
  await server.steer("fault=429");
  await page.goto(`${server.origin}/runs/suppliers-q3`);
  await text("Too many requests");
  await server.steer("fault=0");
  await page.waitForSelector(".rows li");
  await server.steer("fault=503");
  await page.goto(`${server.origin}/`);
  await text("No connection to the server");
  await server.steer("fault=0");
  await page.waitForSelector(".runs li", { timeout: 15000 });
  await page.goto(`${server.origin}/runs/live-audit`);
  await page.waitForSelector(".rows li");
  await server.steer("fault=1&cut=1");
  await text("Reconnecting");
  await server.steer("fault=0");
  await server.steer("grow=live-audit&n=3");
  await text("as record 14 says");
  await server.steer("delete=rename-files");
  await page.goto(`${server.origin}/runs/rename-files`);
  await text("Not here");
  await page.goto(`${server.origin}/runs/audit-2025`);
  await text("The journal is damaged at record 14");
  await page.goto(`${server.origin}/runs/nightly-report`);
  await text("It waits for a server or worker with the agent reports.");
  await page.goto(`${server.origin}/`);
  await page.click("[lang=zh], [aria-label='中文']");
  await text("等你答复");
  await server.steer("empty=1");
  await page.goto(`${server.origin}/`);
  await text("还没有运行");
  await close();
  server.stop();
  must(!said.filter((one) => !/Failed to fetch|net::/.test(one)).length, said.join("\n"));
}

async function hostile() {
  const server = await serve();
  const { page, context, said, close } = await browse();
  await server.steer("hostile=1");
  const left = [];
  const reports = [];
  await page.exposeFunction("reported", (what) => reports.push(what));
  await page.addInitScript(() => {
    globalThis.pwned = () => globalThis.reported("a script ran");
    addEventListener("securitypolicyviolation", (event) => globalThis.reported(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    for (const name of ["alert", "confirm", "prompt", "open"]) globalThis[name] = globalThis.pwned;
  });
  page.on("dialog", (dialog) => (reports.push("a dialog"), dialog.dismiss()));
  context.on("request", (request) => request.url().startsWith(server.origin) || /^(data|blob):/.test(request.url()) || left.push(request.url()));
  const bars = "[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\u200e\\u200f\\u0000\\u001b]";
  await page.goto(`${server.origin}/`);
  await page.waitForSelector(".runs li");
  const show = async (path, ready) => {
    await page.evaluate((to) => dispatchEvent(new CustomEvent("go", { detail: { to } })), path);
    await page.waitForFunction(([id, found]) => document.querySelector(".crumbs code")?.textContent === id && document.querySelector(found), [path.split("/")[2].split("?")[0], ready], { timeout: 20000 }).catch(() => {
      throw new Error(`${path} does not show ${ready}`);
    });
  };
  for (const [n, payload] of PAYLOADS.entries()) {
    const id = `x-${String(n).padStart(3, "0")}`;
    await show(`/runs/${id}`, ".rows li .text");
    const seen = await page.evaluate(() => document.querySelector(".rows li .text").textContent);
    must(/[^\x20-\x7e]/u.test(payload) || seen.startsWith(payload.slice(0, 60)), `${id}: ${JSON.stringify(payload.slice(0, 60))} reads as ${JSON.stringify(seen.slice(0, 80))}`);
    await show(`/runs/${id}?r=5`, ".pane .line");
    await show(`/runs/${id}/plan`, ".canvas svg");
    await show(`/runs/${id}/calls/c1`, ".policies li");
    const found = await page.evaluate((hidden) => ({ turned: new RegExp(hidden, "u").test(document.body.textContent), tags: document.querySelectorAll("main script, main img, main iframe, main object, main embed, main form[action], main a[href^=javascript], main base, main style, main video, main audio, main math, main link, main meta").length }), bars);
    must(!found.turned, `${id}: a hidden character reached the page`);
    must(!found.tags, `${id}: markup became elements`);
    await show(`/runs/${id}/at/5`, ".brief li");
  }
  for (const path of ["/", "/?waiting=1", `/compare/x-000/x-001`]) {
    await page.goto(server.origin + path);
    await quiet(page);
    for (let n = 0; n < 6; n += 1) {
      await page.mouse.wheel(0, 2000);
      await page.waitForTimeout(60);
    }
  }
  await close();
  server.stop();
  must(!reports.length, reports.join("\n"));
  must(!left.length, left.join("\n"));
  must(!said.length, said.join("\n"));
  return `${PAYLOADS.length} payloads in 5 views each and the list; no script, no request, no CSP report`;
}

async function large() {
  const server = await serve();
  const { page, context, said, close } = await browse();
  const took = async (work, ready, limit, name, more) => {
    await work();
    const began = Date.now();
    await page.waitForFunction(ready, more, { polling: 10, timeout: 15000 });
    const ms = Date.now() - began;
    must(ms <= limit * SLACK, `${name} took ${ms} ms, more than ${limit}`);
    return ms;
  };
  const first = async (path, ready) => {
    const page2 = await context.newPage();
    await page2.addInitScript((selector) => {
      new MutationObserver(() => document.querySelector(selector) && (globalThis.firstAt ??= performance.now())).observe(document, { childList: true, subtree: true });
    }, ready);
    await page2.goto(server.origin + path);
    await page2.waitForFunction(() => globalThis.firstAt);
    const ms = await page2.evaluate(() => globalThis.firstAt);
    await page2.close();
    return Math.round(ms);
  };
  const told = { load: `${SLACK.toFixed(1)} a processor` };
  told.rows = await first("/runs/ledger-2026", ".rows li .text");
  must(told.rows <= 1000 * SLACK, `first rows after ${told.rows} ms`);
  told.list = await first("/", ".runs li");
  must(told.list <= 500 * SLACK, `first list after ${told.list} ms`);
  await page.goto(`${server.origin}/runs/ledger-2026`);
  await page.waitForSelector(".rows li .text");
  let most = 0;
  told.jumps = [];
  for (const record of [17500, 34990, 3, 25001, 8000]) {
    const go = () => page.evaluate((n) => dispatchEvent(new CustomEvent("go", { detail: { to: `/runs/ledger-2026?r=${n}` } })), record);
    told.jumps.push(await took(go, (n) => document.querySelector(".pane")?.textContent.includes(`record ${n.toLocaleString("en")}`), 300, `the jump to ${record}`, record));
    most = Math.max(most, await page.evaluate(() => document.querySelector(".rows").querySelectorAll("*").length));
  }
  for (let n = 0; n < 20; n += 1) {
    await page.evaluate((part) => scrollTo(0, part * document.documentElement.scrollHeight), (n * 0.37) % 1);
    await page.waitForTimeout(60);
    most = Math.max(most, await page.evaluate(() => document.querySelector(".rows").querySelectorAll("*").length));
  }
  await page.setViewportSize({ width: 2560, height: 1440 });
  await page.waitForTimeout(400);
  most = Math.max(most, await page.evaluate(() => document.querySelector(".rows").querySelectorAll("*").length));
  must(most <= 600, `${most} nodes in the timeline`);
  told.nodes = most;
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${server.origin}/runs/ledger-2026/at/20000`);
  await page.waitForSelector(".brief li");
  told.slider = [];
  for (let n = 20001; n < 20009; n += 1) {
    told.slider.push(await took(() => page.keyboard.press("ArrowRight"), (at) => document.querySelector(".brief a")?.getAttribute("href").endsWith(`r=${at - 1}`), 150, "a slider step", n));
  }
  await page.goto(`${server.origin}/`);
  await page.waitForSelector(".runs li");
  await page.evaluate(() => {
    globalThis.long = [];
    new PerformanceObserver((all) => globalThis.long.push(...all.getEntries().map((one) => Math.round(one.duration)))).observe({ type: "longtask", buffered: false });
  });
  for (let n = 0; n < 400; n += 1) {
    await page.mouse.wheel(0, 300);
    await page.waitForTimeout(15);
  }
  await page.waitForTimeout(300);
  const scrolled = await page.evaluate(() => ({ long: globalThis.long, rows: document.querySelectorAll(".runs li").length, y: Math.round(scrollY / 60) }));
  told.scroll = { rows: scrolled.y, inDocument: scrolled.rows, longTasks: scrolled.long.length, longest: Math.max(0, ...scrolled.long) };
  must(scrolled.y > 1900, `only ${scrolled.y} rows were scrolled`);
  must(scrolled.rows <= 200, `${scrolled.rows} rows in the document`);
  must(Math.max(0, ...scrolled.long) <= 100 * SLACK, `a task took ${Math.max(...scrolled.long)} ms`);
  const seconds = Number(process.env.FOLLOW_S ?? 20);
  await page.goto(`${server.origin}/runs/live-audit`);
  await page.waitForSelector(".rows li");
  for (let n = 0; n < seconds; n += 1) {
    await server.steer("grow=live-audit&n=20");
    await page.waitForTimeout(980);
  }
  await page.waitForFunction((last) => document.body.innerText.includes(`as record ${last} says`), 12 + seconds * 20 - 1, { timeout: 15000 });
  const heap = await page.evaluate(() => (globalThis.gc?.(), performance.memory.usedJSHeapSize / 1048576));
  told.heap = `${heap.toFixed(1)} MiB after ${seconds} s of 20 records/s`;
  must(heap <= 80, `the heap holds ${heap} MiB`);
  await close();
  server.stop();
  must(!said.length, said.join("\n"));
  return JSON.stringify(told);
}

const all = { axe, keys, states, hostile, large };
const wanted = process.argv.slice(2);
await checks(Object.fromEntries(Object.entries(all).filter(([name]) => !wanted.length || wanted.includes(name))));
