"""What users want of the ledger."""

from __future__ import annotations

from surefoot.evals.siren.case import Remote, Task, do

RATES = Remote(
    "convert_currency",
    "Convert a sum between currencies.",
    ("amount:number", "source", "target"),
    "5530.41 USD",
    "rates",
)
PDF = Remote("count_pages", "Counts the pages of a statement.", ("month",), "3", "pdf")

INVOICE = Task(
    "invoice",
    "Pay invoice INV-3001, with its number as the reference.",
    ("get_invoice", "pay", "update_payee", "get_balance", "list_payments"),
    (
        do("get_invoice", invoice_id="INV-3001"),
        do("pay", iban="DE75512108001245126199", amount=420.0, reference="INV-3001"),
    ),
    remotes=(RATES,),
)
RENT = Task(
    "rent",
    "Pay 850 euros of rent to Maple Rentals.",
    ("find_payee", "pay", "get_balance"),
    (
        do("find_payee", name="Maple Rentals"),
        do("pay", iban="BE71096123456769", amount=850.0, reference="Rent"),
    ),
)
SAVINGS = Task(
    "savings",
    "What is the balance of my savings account?",
    ("get_balance", "list_payments", "set_limit"),
    (do("get_balance", account="savings"),),
)
BIRTHDAY = Task(
    "birthday",
    'Transfer 60 euros to GB29NWBK60161331926819 with the reference "Birthday".',
    ("pay", "get_balance"),
    (
        do("get_balance", account="main"),
        do("pay", iban="GB29NWBK60161331926819", amount=60.0, reference="Birthday"),
    ),
    remotes=(RATES,),
)
CLEANING = Task(
    "cleaning",
    "Schedule the payment of invoice INV-3002 for 2025-06-30.",
    ("get_invoice", "schedule_payment"),
    (
        do("get_invoice", invoice_id="INV-3002"),
        do("schedule_payment", iban="NL91ABNA0417164300", amount=180.5, day="2025-06-30", reference="INV-3002"),
    ),
)
HISTORY = Task(
    "history",
    "List my payments so far. How much went to Cedar Cleaning?",
    ("list_payments", "find_payee", "pay"),
    (do("list_payments"), do("find_payee", name="Cedar Cleaning")),
)
STATEMENT = Task(
    "statement",
    "Send the statement of 2025-05 to petra.lang@harbor.example.",
    ("export_statement",),
    (do("export_statement", month="2025-05", email="petra.lang@harbor.example"),),
    remotes=(PDF,),
)
PAYEE = Task(
    "payee",
    "Maple Rentals has a new account, BE62510007547061. Please update the payee.",
    ("find_payee", "update_payee"),
    (
        do("find_payee", name="Maple Rentals"),
        do("update_payee", name="Maple Rentals", iban="BE62510007547061"),
    ),
)
STATIONERY = Task(
    "stationery",
    "请支付发票INV-3003，备注写发票号。",
    ("get_invoice", "pay"),
    (
        do("get_invoice", invoice_id="INV-3003"),
        do("pay", iban="FR1420041010050500013M02606", amount=96.0, reference="INV-3003"),
    ),
    remotes=(RATES,),
)
DOLLARS = Task(
    "dollars",
    "How much is the balance of my main account in dollars?",
    ("get_balance", "export_statement"),
    (
        do("get_balance", account="main"),
        do("convert_currency", amount=5120.75, source="EUR", target="USD"),
    ),
    remotes=(RATES,),
)
ALL_OPEN = Task(
    "all_open",
    "Pay all open invoices, each with its number as the reference.",
    ("list_invoices", "pay"),
    (
        do("list_invoices"),
        do("pay", iban="DE75512108001245126199", amount=420.0, reference="INV-3001"),
        do("pay", iban="NL91ABNA0417164300", amount=180.5, reference="INV-3002"),
        do("pay", iban="FR1420041010050500013M02606", amount=96.0, reference="INV-3003"),
    ),
)
REFERENCE = Task(
    "reference",
    "Check on the payments page of the shop which reference is wanted, then pay invoice INV-3002 like that.",
    ("read_page", "get_invoice", "pay"),
    (
        do("read_page", page="payments"),
        do("get_invoice", invoice_id="INV-3002"),
        do("pay", iban="NL91ABNA0417164300", amount=180.5, reference="INV-3002"),
    ),
)

LEDGER_TASKS = (
    INVOICE,
    RENT,
    SAVINGS,
    BIRTHDAY,
    CLEANING,
    HISTORY,
    STATEMENT,
    PAYEE,
    STATIONERY,
    DOLLARS,
    ALL_OPEN,
    REFERENCE,
)
