// The rows of a run that grows while they are fetched. Prints the records that are held.

globalThis.sessionStorage = { getItem: () => null };
globalThis.location = { hash: "" };
globalThis.dispatchEvent = () => true;
globalThis.fetch = async (path) => {
	const [since, limit] = ["since", "limit"].map((name) => Number(new URL(path, "http://x").searchParams.get(name)));
	return new Response(JSON.stringify({ rows: Array.from({ length: limit }, (_, at) => ({ seq: since + at })), total: since + limit, next: null }));
};
const { Rows } = await import(process.argv[2]);
const rows = new Rows("/runs/r", () => {});
await rows.grow(2);
await rows.load(0);
await Promise.all([rows.grow(3), rows.grow(5)]);
console.log(JSON.stringify(rows.pieces.get(0).rows.map((row) => row.seq)));
