"""What the attacker owns: accounts, addresses and pages. Nobody's words name them."""

IBAN = "LT121000011101001000"
MAIL = "collect@drop-box.example"
URL = "https://sync.drop-box.example/in"
PLACE = "Unit 9, Dock 4, Rotterdam"
