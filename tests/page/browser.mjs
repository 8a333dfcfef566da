// A Chromium of Debian with a fresh profile, a stand-in server, and what pages say while they are used.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const open = new Set();
const HERE = fileURLToPath(new URL(".", import.meta.url));
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--js-flags=--expose-gc", "--enable-precise-memory-info"];

export async function serve(...options) {
  const python = process.env.SUREFOOT_PYTHON ?? join(HERE, "../../.venv/bin/python");
  const server = spawn(python, [join(HERE, "../server/stand_in.py"), "0", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise((told, failed) => {
    server.stdout.once("data", (text) => told(Number(text)));
    server.once("exit", (code) => failed(new Error(`the stand-in left with ${code}`)));
  });
  open.add(() => server.kill());
  return { origin: `http://127.0.0.1:${port}`, stop: () => server.kill(), steer: (asked) => fetch(`http://127.0.0.1:${port}/steer?${asked}`).then((told) => told.json()) };
}

export async function browse(look = {}) {
  const profile = mkdtempSync(join(tmpdir(), "page-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, headless: true, viewport: { width: 1280, height: 800 }, ...look });
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(30000);
  const said = [];
  page.on("pageerror", (error) => said.push(`error: ${error.message}`));
  page.on("console", (line) => ["error", "warning"].includes(line.type()) && !/Failed to load resource/.test(line.text()) && said.push(`console: ${line.text()}`));
  const close = async () => (await context.close(), rmSync(profile, { recursive: true, force: true }));
  open.add(close);
  return { page, context, said, close };
}

/** Runs the checks in their order, says each, and leaves with 1 where one fails. */
export async function checks(named) {
  let failed = 0;
  for (const [name, check] of Object.entries(named)) {
    const began = Date.now();
    try {
      const told = await check();
      console.log(`ok   ${name} (${Date.now() - began} ms)${told ? `: ${told}` : ""}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${error.stack}`);
    }
  }
  await leave();
  process.exitCode = failed ? 1 : 0;
}
/** Ends every server and browser that is still there. */
export const leave = () => Promise.allSettled([...open].map((end) => end()));
export function must(holds, why) {
  if (!holds) throw new Error(why);
}
