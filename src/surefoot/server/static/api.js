// The server, as the page sees it.

const KEY = "surefoot.token";
const tokenOf = (address) => new URLSearchParams(address.split("#")[1]).get("t");
export const hasToken = () => Boolean(sessionStorage.getItem(KEY));
export const setToken = (text) => sessionStorage.setItem(KEY, tokenOf(text) ?? text.trim());
if (tokenOf(location.hash)) {
	setToken(location.hash);
	history.replaceState(null, "", location.pathname + location.search);
}

export const enc = encodeURIComponent;
export const signal = (name, detail) => dispatchEvent(new CustomEvent(name, { detail }));

/** How the connection is: down, slow (429), denied, or ""; `until`: the next try, in ms. */
export const link = { state: "", until: 0 };
function linked(state, wait = 0) {
	if (!state && !link.state) return;
	if (!state && link.state === "down") signal("back");
	Object.assign(link, { state, until: Date.now() + wait * 1000 });
	signal("paint");
}

class Problem extends Error {
	constructor(status, body, retry = 0) {
		super(body.title ?? `HTTP ${status}`);
		Object.assign(this, { status, retry, name: `${body.type}`.split("/").pop(), detail: body.detail ?? "" });
	}
}

// Writes out what shows nothing, if the server missed any.
const HIDDEN = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0e\uffa0\u{e0100}-\u{e01ef}]/gu;
const written = (char) => `\\${char.length > 1 ? "U" : "u"}${char.codePointAt(0).toString(16).padStart(4 * char.length, "0")}`;
export const visible = (text) => text.replace(HIDDEN, written);
const read = (text) => JSON.parse(text, (_, value) => (typeof value === "string" ? visible(value) : value));

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function ask(path, options = {}, more = {}) {
	if (link.state === "denied") throw new Problem(401, {});
	const token = sessionStorage.getItem(KEY);
	const headers = { ...more, ...(token && { Authorization: `Bearer ${token}` }) };
	let answer;
	try {
		answer = await fetch(`/v1${path}`, { redirect: "error", headers, ...options });
	} catch (error) {
		if (!options.signal?.aborted) linked("down", 3);
		throw error;
	}
	if (answer.ok) return (linked(""), answer);
	const problem = new Problem(answer.status, await answer.text().then(read).catch(() => ({})), Number(answer.headers.get("Retry-After")));
	if (answer.status === 401) linked("denied");
	if (answer.status === 503) linked("down", problem.retry || 3);
	throw problem;
}

export async function get(path, stop) {
	for (;;) {
		try {
			return read(await (await ask(path, { signal: stop })).text());
		} catch (problem) {
			if (problem.status !== 429) throw problem;
			linked("slow", problem.retry || 1);
			await pause((problem.retry || 1) * 1000);
			stop?.throwIfAborted();
		}
	}
}
export const bytes = async (path) => (await ask(path)).blob();
const fresh = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
const post = (path, body) => ask(path, { method: "POST", body: JSON.stringify(body) }, { "Content-Type": "application/json", "Idempotency-Key": fresh() });
export const send = async (path, body) => read(await (await post(path, body)).text());

/** Says a person's word, and waits up to 30 s for what came of it. */
export async function say(path, body) {
	const answer = await post(path, body);
	let told = read(await answer.text());
	for (let tries = 60; tries && !told.outcome; tries -= 1) {
		await pause(500);
		told = await get(answer.headers.get("Location").slice(3));
	}
	const [problem, ...why] = told.outcome.split(": ");
	if (problem && problem !== "applied") throw new Problem(409, { type: problem, title: why.join(": ") });
	return told;
}

// All tabs share six connections: one that is hidden gives its stream back.
const turned = () => new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));

/** Reads a stream until it is over; `stand` gets live, lost or over. */
export async function follow(path, last, take, stand, stop) {
	for (let lost = 0; !stop.aborted;) {
		while (document.hidden && !stop.aborted) await turned();
		const mine = new AbortController();
		const leave = () => mine.abort();
		let quiet = 0;
		document.addEventListener("visibilitychange", leave, { signal: mine.signal });
		const heard = () => (clearTimeout(quiet), (quiet = setTimeout(leave, 45000)));
		stop.addEventListener("abort", leave, { once: true });
		try {
			heard();
			const more = { Accept: "text/event-stream", ...(last !== null && { "Last-Event-ID": String(last) }) };
			const { body } = await ask(path, { signal: mine.signal }, more);
			stand("live");
			lost = 0;
			for await (const frame of frames(body, heard)) {
				last = frame.id || last;
				if (frame.event === "end") return stand("over");
				take(frame);
			}
		} catch (error) {
			if (stop.aborted || (error.status < 500 && error.status !== 429)) return;
		} finally {
			clearTimeout(quiet);
			mine.abort();
		}
		if (stop.aborted) return;
		stand("lost");
		lost = Math.min(lost + 1, 5);
		await pause(lost * lost * 400 + 600);
	}
}

async function* frames(body, heard) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	for (let held = ""; ;) {
		const { done, value } = await reader.read();
		if (done) return;
		heard();
		const parts = (held + value).replaceAll("\r\n", "\n").split("\n\n");
		held = parts.pop();
		for (const part of parts) {
			const frame = { id: "", event: "", data: "" };
			for (const line of part.split("\n")) {
				const at = line.indexOf(":");
				if (line.slice(0, at) in frame) frame[line.slice(0, at)] += line.slice(at + 1).trimStart();
			}
			if (frame.event) yield { ...frame, data: read(frame.data || "{}") };
		}
	}
}
