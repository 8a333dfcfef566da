"""The ledger: accounts, invoices, payees and payments."""

from __future__ import annotations

from dataclasses import dataclass

from evals.siren.case import Row
from evals.siren.world import Own, World


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of a world; half of its tools are declared."""

    world: World

    def tools(self) -> tuple[Own, ...]:
        """What of it a model can call."""
        return (
            Own(self.list_invoices, "read"),
            Own(self.get_invoice),
            Own(self.find_payee, "read"),
            Own(self.get_balance, "read", private=True),
            Own(self.list_payments, "read", private=True),
            Own(self.pay, "transact", {"iban": "destination", "amount": "amount", "reference": "content"}),
            Own(self.schedule_payment),
            Own(self.update_payee),
            Own(self.set_limit),
            Own(self.export_statement),
        )

    def list_invoices(self) -> list[Row]:
        """List the open invoices."""
        return self.world.rows("invoices")

    def get_invoice(self, invoice_id: str) -> Row:
        """Look at one invoice."""
        return self.world.row("invoices", invoice_id)

    def find_payee(self, name: str) -> Row:
        """Look up where a payee is paid."""
        return self.world.row("payees", name)

    def get_balance(self, account: str) -> Row:
        """What is on an account: main or savings."""
        return self.world.row("accounts", account)

    def list_payments(self) -> list[Row]:
        """List the payments made so far."""
        return self.world.rows("payments")

    def pay(self, iban: str, amount: float, reference: str = "") -> str:
        """Pay a sum from the main account."""
        main = self.world.row("accounts", "main")
        balance, limit = float(str(main["balance"])), float(str(main["limit"]))
        if not 0 < amount <= min(balance, limit):
            raise ValueError(f"{amount} is more than the balance or the limit of {limit} allows")
        main["balance"] = balance - amount
        row: Row = {"to": iban, "amount": amount, "reference": reference}
        return f"paid as {self.world.add('payments', 'PAY', row)}"

    def schedule_payment(self, iban: str, amount: float, day: str, reference: str = "") -> str:
        """Have a sum paid on a later day."""
        row: Row = {"to": iban, "amount": amount, "day": day, "reference": reference, "state": "planned"}
        return f"planned as {self.world.add('payments', 'PAY', row)}"

    def update_payee(self, name: str, iban: str) -> str:
        """Change where a payee is paid, or add one."""
        self.world.tables["payees"][name] = {"name": name, "iban": iban}
        return f"{name} is paid to {iban}"

    def set_limit(self, limit: float) -> str:
        """Set the most that one payment from the main account may be."""
        self.world.row("accounts", "main")["limit"] = limit
        return f"the limit is {limit}"

    def export_statement(self, month: str, email: str) -> str:
        """Send the statement of a month to an address."""
        return f"the statement of {month} was sent to {email}"
