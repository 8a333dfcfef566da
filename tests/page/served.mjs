// The page in a real browser against `surefoot serve` itself: `node served.mjs LINK` with the link that it prints.
// A run asks, a person allows exactly that, the run ends; a page of another port gets nothing.

import { createServer } from "node:http";
import { browse, checks, must } from "./browser.mjs";

const link = process.argv[2];
const { origin } = new URL(link);
const token = new URL(link).hash.slice("#t=".length);
const { page, said } = await browse();

async function ask(method, path, body) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const answer = await fetch(`${origin}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  must(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json();
}
async function until(run, status) {
  for (let left = 200; left; left -= 1) {
    const shown = await ask("GET", `/runs/${run}`);
    if (shown.status === status) return shown;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`run ${run} did not become ${status}`);
}

let run = "";
await checks({
  async "the link opens the list, and the token is not in the address"() {
    await page.goto(link);
    await page.waitForFunction(() => document.querySelector("main h1, main h2") && !document.querySelector(".skeleton"));
    must(!page.url().includes(token), "the token stays in the address");
  },
  async "a run that asks comes to the list by itself"() {
    run = (await ask("POST", "/runs", { agent: "mailer", task: "send a mail to bob@example.org" })).run_id;
    await until(run, "paused");
    await page.getByText("send a mail to bob@example.org").first().waitFor();
  },
  async "what is allowed is what is shown"() {
    const [question] = (await ask("GET", `/runs/${run}`)).waiting;
    await page.goto(`${origin}/runs/${run}/calls/${question.call}`);
    await page.getByText("bob@example.org").first().waitFor();
    await page.waitForTimeout(1000);
    await page.getByRole("button", { name: "Allow exactly this" }).click();
    await until(run, "completed");
  },
  async "the timeline, the state and a fork are shown"() {
    for (const path of [`/runs/${run}`, `/runs/${run}/at/3`, `/compare/${run}/${run}`]) {
      await page.goto(origin + path);
      await page.waitForFunction(() => document.querySelector("main h1, main h2") && !document.querySelector(".skeleton"));
    }
    must(!said.length, said.join("\n"));
  },
  async "a page of another port gets nothing, with the token or without"() {
    const evil = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end("<title>evil</title>"));
    await new Promise((done) => evil.listen(0, "127.0.0.1", done));
    await page.goto(`http://127.0.0.1:${evil.address().port}/`);
    const got = await page.evaluate(async ([to, secret]) => {
      const tried = [];
      for (const [mode, headers, method, body] of [
        ["cors", { Authorization: `Bearer ${secret}` }, "GET"],
        ["cors", {}, "GET"],
        ["cors", { "Content-Type": "text/plain" }, "POST", "{}"],
        ["no-cors", {}, "POST", '{"agent":"mailer","task":"x"}'],
      ]) {
        tried.push(await fetch(`${to}/v1/runs`, { mode, headers, method, body }).then((one) => `${one.type} ${one.status}`, () => "refused"));
      }
      return tried;
    }, [origin, token]);
    evil.close();
    must(JSON.stringify(got) === JSON.stringify(Array(4).fill("refused")), JSON.stringify(got));
    must((await ask("GET", "/runs")).runs.length === 1, "a page of another port has started a run");
  },
});
