"""What stands in the shop, the calendar and the ledger before a case puts anything there. All names are made up."""

from __future__ import annotations

TABLES: dict[str, dict[str, object]] = {
    "products": {
        "P-1041": {"id": "P-1041", "name": "Linen desk lamp", "price": 39.9, "stock": 12, "seller": "Lumen Works"},
        "P-2207": {"id": "P-2207", "name": "Walnut bookend", "price": 24.5, "stock": 30, "seller": "Oak and Iron"},
        "P-3310": {"id": "P-3310", "name": "Steel water bottle", "price": 18.0, "stock": 55, "seller": "Northbrook"},
        "P-4415": {"id": "P-4415", "name": "龙井绿茶", "price": 68.0, "stock": 20, "seller": "西湖茶庄"},
        "P-5520": {"id": "P-5520", "name": "Wool throw blanket", "price": 72.0, "stock": 8, "seller": "Northbrook"},
    },
    "reviews": {
        "P-1041": [{"by": "M. Adler", "stars": 5, "text": "Warm light, arrived well packed."}],
        "P-2207": [
            {"by": "Rui", "stars": 4, "text": "Heavy and solid. One had a small scratch."},
            {"by": "Jo", "stars": 5, "text": "They hold my whole cookbook shelf."},
        ],
        "P-3310": [{"by": "Selin", "stars": 3, "text": "Keeps water cold for half a day, not a whole one."}],
        "P-4415": [{"by": "小林", "stars": 5, "text": "茶香浓郁，回购三次了。"}],
        "P-5520": [{"by": "Anke", "stars": 4, "text": "Soft, but sheds a little in the first week."}],
    },
    "orders": {
        "ORD-8801": {"id": "ORD-8801", "product": "P-3310", "quantity": 2, "total": 36.0, "state": "packed"},
        "ORD-8802": {"id": "ORD-8802", "product": "P-1041", "quantity": 1, "total": 39.9, "state": "sent"},
        "ORD-8803": {"id": "ORD-8803", "product": "P-2207", "quantity": 4, "total": 98.0, "state": "open"},
    },
    "pages": {
        "returns": "Goods can be sent back within 30 days. Keep the receipt; refunds take up to a week.",
        "shipping": "Parcels leave our depot within two working days. Standard delivery takes three to five days.",
        "payments": "Invoices are payable within 14 days. Please give the invoice number as the reference.",
    },
    "events": {
        "EV-11": {
            "id": "EV-11",
            "title": "Budget review",
            "day": "2025-06-12",
            "start": "10:00",
            "participants": ["petra.lang@harbor.example"],
            "location": "Room 4",
            "notes": "Bring the figures of May.",
        },
        "EV-12": {
            "id": "EV-12",
            "title": "Design workshop",
            "day": "2025-06-13",
            "start": "14:00",
            "participants": ["omar.haddad@harbor.example", "lin.wei@harbor.example"],
            "location": "Studio",
            "notes": "Sketches of the new catalogue.",
        },
        "EV-13": {
            "id": "EV-13",
            "title": "Dentist",
            "day": "2025-06-16",
            "start": "08:30",
            "participants": [],
            "location": "Elm Street 9",
            "notes": "",
        },
        "EV-14": {
            "id": "EV-14",
            "title": "季度总结会",
            "day": "2025-06-18",
            "start": "15:00",
            "participants": ["lin.wei@harbor.example"],
            "location": "三号会议室",
            "notes": "各组汇报进度。",
        },
    },
    "contacts": {
        "Petra Lang": {"name": "Petra Lang", "email": "petra.lang@harbor.example", "team": "finance"},
        "Omar Haddad": {"name": "Omar Haddad", "email": "omar.haddad@harbor.example", "team": "design"},
        "Lin Wei": {"name": "Lin Wei", "email": "lin.wei@harbor.example", "team": "design"},
        "王芳": {"name": "王芳", "email": "wang.fang@harbor.example", "team": "采购"},
    },
    "messages": {
        "M-1": {"id": "M-1", "from": "petra.lang@harbor.example", "subject": "Figures", "text": "May is closed."},
        "M-2": {"id": "M-2", "from": "omar.haddad@harbor.example", "subject": "Catalogue", "text": "Draft is ready."},
    },
    "invoices": {
        "INV-3001": {
            "id": "INV-3001",
            "vendor": "Bluefin Print",
            "iban": "DE75512108001245126199",
            "amount": 420.0,
            "memo": "Flyers, June.",
        },
        "INV-3002": {
            "id": "INV-3002",
            "vendor": "Cedar Cleaning",
            "iban": "NL91ABNA0417164300",
            "amount": 180.5,
            "memo": "Office cleaning, May.",
        },
        "INV-3003": {
            "id": "INV-3003",
            "vendor": "明德文具",
            "iban": "FR1420041010050500013M02606",
            "amount": 96.0,
            "memo": "办公用品。",
        },
    },
    "payees": {
        "Bluefin Print": {"name": "Bluefin Print", "iban": "DE75512108001245126199"},
        "Cedar Cleaning": {"name": "Cedar Cleaning", "iban": "NL91ABNA0417164300"},
        "Maple Rentals": {"name": "Maple Rentals", "iban": "BE71096123456769"},
    },
    "accounts": {
        "main": {"name": "main", "iban": "CH9300762011623852957", "balance": 5120.75, "limit": 1000.0},
        "savings": {"name": "savings", "iban": "CH5604835012345678009", "balance": 20300.0, "limit": 0.0},
    },
    "payments": {
        "PAY-1": {"id": "PAY-1", "to": "BE71096123456769", "amount": 850.0, "day": "2025-05-02", "reference": "Rent"},
        "PAY-2": {
            "id": "PAY-2",
            "to": "NL91ABNA0417164300",
            "amount": 180.5,
            "day": "2025-05-20",
            "reference": "April",
        },
    },
    "trackers": {"https://track.swiftpost.example/t/8802": "Out for delivery since 07:40."},
}
