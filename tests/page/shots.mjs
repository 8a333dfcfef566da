// Pictures of every view, to be looked at: `node shots.mjs FOLDER [view …]`, in light and dark, at 320, 1,280 and 2,560 px.

import { mkdirSync } from "node:fs";
import { browse, leave, serve } from "./browser.mjs";

const VIEWS = {
  list: "/", waiting: "/?waiting=1", none: "/?q=zzzz", start: "/?new=1", timeline: "/runs/suppliers-q3", opened: "/runs/suppliers-q3?r=6", live: "/runs/live-audit", long: "/runs/ledger-2026",
  question: "/runs/vendor-mail/calls/c2", asked: "/runs/vendor-mail", doubt: "/runs/table-for-six/calls/c1", sign: "/runs/move-servers/calls/plan", plan: "/runs/lisbon/plan", versions: "/runs/lisbon/plan?version=2&beside=1",
  repaired: "/runs/lisbon", damaged: "/runs/audit-2025", unserved: "/runs/nightly-report", at: "/runs/suppliers-q3/at/20", compare: "/compare/suppliers-q3/suppliers-q3-fork", gone: "/runs/nothing", noplan: "/runs/suppliers-q3/plan", call: "/runs/suppliers-q3/calls/c2",
};
const [folder = "/tmp/shots", ...wanted] = process.argv.slice(2);
const only = (kind, all) => (process.env[kind] ? process.env[kind].split(",") : all);
mkdirSync(folder, { recursive: true });
const server = await serve();
const { page, said } = await browse();
for (const theme of only("THEMES", ["light", "dark"])) {
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  for (const width of only("WIDTHS", ["320", "1280", "2560"]).map(Number)) {
    await page.setViewportSize({ width, height: width === 320 ? 700 : width === 1280 ? 800 : 1440 });
    for (const [name, path] of Object.entries(VIEWS)) {
      if (wanted.length && !wanted.includes(name)) continue;
      await page.goto(server.origin + path);
      await page.waitForFunction(() => !document.querySelector(".skeleton") && document.querySelector("main h1, main h2"), null, { timeout: 20000 }).catch(() => console.log(`${name} does not come to rest`));
      await page.waitForTimeout(500);
      await page.screenshot({ path: `${folder}/${name}-${width}-${theme}.png` });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) console.log(`${name} at ${width}: ${wide} px too wide`);
    }
  }
}
console.log(said.join("\n"));
await leave();
