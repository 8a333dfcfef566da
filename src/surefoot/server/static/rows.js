// The rows of a run, in 20 kept pieces of 500 records.

import { get } from "./api.js";

const PIECE = 500;
const KEPT = 20;

export class Rows {
	total = 0;
	pieces = new Map();
	sizes = [];
	rate = 1;
	folds = new Set();
	allFolded = false;
	clock = 0;
	constructor(path, changed) {
		Object.assign(this, { path, changed });
	}
	get parts() {
		return Math.ceil(this.total / PIECE);
	}
	get count() {
		return this.offset(this.parts);
	}
	size(part) {
		return this.sizes[part] ?? Math.round(Math.min(PIECE, this.total - part * PIECE) * this.rate);
	}
	offset(part) {
		let sum = 0;
		for (let at = 0; at < part; at += 1) sum += this.size(at);
		return sum;
	}
	/** The piece and the place in it of the row at `index`. */
	place(index) {
		let [part, left] = [0, index];
		for (; part < this.parts - 1 && left >= this.size(part); part += 1) left -= this.size(part);
		return [part, left];
	}
	/** The row at `index`; null while it is on its way. */
	at(index) {
		const [part, left] = this.place(index);
		const piece = this.pieces.get(part);
		if (!piece) this.load(part);
		if (!piece?.shown) return null;
		piece.used = this.clock += 1;
		return piece.shown[left] ?? null;
	}
	/** Where record `seq` stands. */
	async find(seq) {
		const part = Math.max(0, Math.min(Math.floor(seq / PIECE), this.parts - 1));
		await this.load(part);
		const shown = this.pieces.get(part)?.shown ?? [];
		const at = shown.findIndex((row) => row.seq >= seq);
		return this.offset(part) + (at < 0 ? Math.max(shown.length - 1, 0) : at);
	}
	load(part) {
		const held = this.pieces.get(part);
		if (held) return held.loading;
		const piece = { rows: [], shown: null, used: this.clock += 1, next: part * PIECE };
		this.pieces.set(part, piece);
		return this.fill(part, piece);
	}
	fill(part, piece) {
		piece.loading = this.fetch(part, piece).catch(() => {
			setTimeout(() => piece.shown || (this.pieces.delete(part), this.changed()), 3000);
		});
		return piece.loading;
	}
	async fetch(part, piece) {
		await piece.loading;
		const end = Math.min((part + 1) * PIECE, this.total);
		while (piece.next < end) {
			const told = await get(`${this.path}/rows?since=${piece.next}&limit=${end - piece.next}`);
			piece.rows.push(...told.rows);
			piece.next = Math.max(piece.next + 1, Math.min(told.next ?? told.total, end));
		}
		this.settle(part, piece);
		const held = [...this.pieces].filter(([, one]) => one.shown).sort(([, a], [, b]) => a.used - b.used);
		for (const [old] of held.slice(0, Math.max(0, held.length - KEPT))) this.pieces.delete(old);
		this.changed();
	}
	settle(part, piece) {
		let last = "";
		for (const row of piece.rows) {
			row.key = row.step ? `${row.step_id}/${row.step}` : "";
			row.head = row.key !== "" && row.key !== last;
			last = row.key || last;
		}
		piece.shown = piece.rows.filter((row) => row.head || !row.key || !this.isFolded(row.key));
		this.sizes[part] = piece.shown.length;
		const records = Math.max(piece.next - part * PIECE, 1);
		if (records > PIECE / 2 || part === 0) this.rate = piece.shown.length / records;
	}

	async grow(total) {
		const part = this.parts - 1;
		this.total = Math.max(this.total, total);
		const piece = this.pieces.get(part);
		if (piece && piece.next < Math.min((part + 1) * PIECE, this.total)) await this.fill(part, piece);
	}

	isFolded(key) {
		return this.allFolded !== this.folds.has(key);
	}
	hidden(row) {
		return this.pieces.get(Math.floor(row.seq / PIECE)).rows.filter((one) => one.key === row.key).length - 1;
	}
	fold(key) {
		if (!this.folds.delete(key)) this.folds.add(key);
		this.again();
	}
	foldAll() {
		this.folds.clear();
		this.allFolded = !this.allFolded;
		this.again();
	}
	again() {
		this.sizes = [];
		for (const [part, piece] of this.pieces) if (piece.shown) this.settle(part, piece);
		this.changed();
	}
}
