// Which of many equal rows are in the document.

export class Window {
	first = 0;
	last = 0;
	list = null;
	constructor(height) {
		this.height = height;
		this.last = Math.ceil(innerHeight / height);
	}
	get top() {
		return this.list.getBoundingClientRect().top;
	}
	/** Finds the part that is to be seen; true if it has changed. */
	move(count) {
		if (!this.list?.isConnected) return false;
		const { first, last } = this;
		this.first = Math.max(0, Math.min(Math.floor(-this.top / this.height) - 6, count - 1));
		this.last = Math.min(count, Math.max(this.first, Math.ceil((innerHeight - this.top) / this.height) + 6));
		return first !== this.first || last !== this.last;
	}
	fit(name, count) {
		this.list = document.querySelector(name);
		if (!this.list) return;
		this.height = this.list.firstElementChild?.getBoundingClientRect().height || this.height;
		this.list.style.setProperty("padding-top", `${this.first * this.height}px`);
		this.list.style.setProperty("padding-bottom", `${Math.max(count - this.last, 0) * this.height}px`);
	}
	show(index, isMiddle = false) {
		if (!this.list) return;
		const y = this.top + index * this.height;
		const [low, high] = [160, innerHeight - this.height - 24];
		if (y >= low && y <= high) return;
		scrollBy({ top: y - (isMiddle ? (low + high) / 2 : y < low ? low : high), behavior: "instant" });
	}
}
