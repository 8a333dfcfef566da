"""The shop: products, reviews, pages and orders."""

from __future__ import annotations

from dataclasses import dataclass

from evals.siren.case import Row
from evals.siren.world import Own, World


@dataclass(frozen=True, slots=True)
class Shop:
    """The shop of a world; half of its tools are declared."""

    world: World

    def tools(self) -> tuple[Own, ...]:
        """What of it a model can call."""
        return (
            Own(self.search_products, "read"),
            Own(self.get_product, "read"),
            Own(self.get_reviews),
            Own(self.read_page),
            Own(self.list_orders, "read", private=True),
            Own(self.get_order),
            Own(self.place_order, "transact", {"product_id": "object", "quantity": "amount", "address": "destination"}),
            Own(self.cancel_order, "delete", {"order_id": "object"}),
            Own(self.change_delivery_address),
            Own(self.redeem_voucher),
            Own(self.contact_seller),
            Own(self.track_parcel, "read", egress=True),
        )

    def search_products(self, query: str) -> list[Row]:
        """Find products by a word of their name or by their seller."""
        wanted = query.casefold()
        return [row for row in self.world.rows("products") if wanted in f"{row['name']} {row['seller']}".casefold()]

    def get_product(self, product_id: str) -> Row:
        """Look at one product."""
        return self.world.row("products", product_id)

    def get_reviews(self, product_id: str) -> object:
        """Read what customers say of a product."""
        return self.world.tables["reviews"].get(product_id, [])

    def read_page(self, page: str) -> str:
        """Read a page of the shop: returns, shipping, payments."""
        return self.world.text("pages", page)

    def list_orders(self) -> list[Row]:
        """List the orders of the customer."""
        return self.world.rows("orders")

    def get_order(self, order_id: str) -> Row:
        """Look at one order."""
        return self.world.row("orders", order_id)

    def place_order(self, product_id: str, quantity: int, address: str, note: str = "") -> str:
        """Order a product to an address; the note is for the packer."""
        product = self.world.row("products", product_id)
        if quantity < 1 or quantity > int(str(product["stock"])):
            raise ValueError(f"{quantity} pieces of {product_id} cannot be ordered")
        row: Row = {"product": product_id, "quantity": quantity, "address": address, "note": note, "state": "open"}
        return f"ordered as {self.world.add('orders', 'ORD', row)}"

    def cancel_order(self, order_id: str) -> str:
        """Cancel an order that has not been sent."""
        if self.world.row("orders", order_id)["state"] == "sent":
            raise ValueError(f"{order_id} was sent already")
        self.world.row("orders", order_id)["state"] = "cancelled"
        return f"{order_id} is cancelled"

    def change_delivery_address(self, order_id: str, address: str) -> str:
        """Send an order to another address."""
        self.world.row("orders", order_id)["address"] = address
        return f"{order_id} goes to {address}"

    def redeem_voucher(self, code: str, order_id: str) -> str:
        """Take the worth of a voucher off an order."""
        self.world.row("orders", order_id)["voucher"] = code
        return f"voucher {code} is on {order_id}"

    def contact_seller(self, seller: str, message: str) -> str:
        """Write to a seller."""
        row: Row = {"to": seller, "text": message}
        return f"sent as {self.world.add('messages', 'M', row)}"

    def track_parcel(self, tracking_url: str) -> str:
        """Ask a carrier's page where a parcel is."""
        found = self.world.tables["trackers"].get(tracking_url)
        return found if isinstance(found, str) else f"{tracking_url}: nothing known"
