"""The words in the names of tools, parameters and fields by which the gate tells what they are for. Data only.

English words stand in their dictionary form and are compared by `stems.stem`. Nothing here is the name of a product, a
tool or a task. Source: spec/guard.md, sections 4.3 and 4.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.types.guard import Role

ROLE_WORDS: Mapping[Role, str] = {
    "destination": """
        to cc bcc recipient receiver addressee destination dest target email mail address url uri link href website
        site webpage host hostname domain endpoint webhook callback iban account acct payee beneficiary creditor
        vendor merchant seller supplier user username member guest participant attendee invitee person people
        contact customer client employee colleague friend channel group team thread conversation chat phone mobile
        telephone cell fax handle assignee follower audience subscriber mailbox counterparty wallet bic swift
        sortcode routing server collaborator owner delegate viewer editor organizer organiser correspondent teammate
        partner
        """,
    "object": """
        id ids uuid guid file filename path filepath folder directory item name document doc record event product
        hotel restaurant company car flight ticket invoice transaction task project resource object entity
        attachment calendar appointment booking reservation asset article hash sha reference ref source
        """,
    "amount": """
        amount price fee cost total sum quantity qty count value budget tip rate salary payment balance unit share
        money number num percentage percent deposit fare premium wage
        """,
    "time": """
        date datetime time start end due deadline begin beginning since until day month year week when hour minute
        duration expiry expiration timestamp checkin checkout arrival departure birthday finish schedule
        """,
    "secret": """
        password passwd passphrase passcode token pin secret credential apikey otp cvv cvc ssn key cookie auth pwd
        """,
    "content": """
        body subject title location note text message content description comment summary caption memo reason remark
        detail headline question answer signature html markdown instruction prompt feedback review greeting bio
        story paragraph letter msg desc purpose venue place announcement agenda topic heading notice
        """,
    "selector": """
        query q filter city search keyword term pattern sort limit offset page category type language country region
        format genre cuisine color colour size criteria criterion town locale lang tag
        """,
}
"""What a word in a parameter's name says of its role; the last word is asked first."""

TELLING_FIELDS = """
    body text message content description desc comment summary caption memo note reason remark detail answer html
    markdown instruction feedback review bio story paragraph letter msg snippet excerpt preview reply quote
    """
"""In a field's name: running text about a thing, that somebody has written; what it is called stands in others."""

OLD_WORDS, NEW_WORDS = "old find search original", "new replace replacement updated"
"""First words of the two texts of an edit, and what may stand behind them."""
EDITED_WORDS = "file filename path filepath document doc note page"
TEXT_WORDS = "text string str content value line word phrase"

BOUND_WORDS = "limit cap ceiling"
"""In a parameter's name beside a number: a limit that is set, where the call is no read."""

SELECTING_WORDS = "query q filter search keyword term pattern criteria criterion"
"""Selectors that say on what a call with an effect acts; the others describe what it makes."""
ORDERING_WORDS = "sort limit offset page"
"""Selectors that say nothing of that in any call."""

QUANTITY_WORDS = "quantity qty count unit share percentage percent number num item night people guest copy ticket"
"""In the name of an amount: how many, and no money."""

PRICE_WORDS = "price rate fare unit each"
"""In the name of an amount: what one costs, so that a quantity beside it may multiply it."""

CURRENCY_NAMES: Mapping[str, str] = {
    "$": "USD", "dollar": "USD", "buck": "USD", "€": "EUR", "euro": "EUR", "£": "GBP", "pound": "GBP", "¥": "CNY JPY",
    "yen": "JPY", "yuan": "CNY", "rmb": "CNY", "renminbi": "CNY", "元": "CNY", "块": "CNY", "块钱": "CNY",
    "人民币": "CNY", "美元": "USD", "欧元": "EUR", "英镑": "GBP", "日元": "JPY", "₹": "INR", "rupee": "INR",
    "franc": "CHF",
}  # fmt: skip
"""Signs and words of currencies, and the codes that they may stand for."""

PAIRED_WORDS = "source target from to base quote"
"""Last words of a parameter's name under which a currency's code is no place and no party."""

CURRENCIES = """
    AED AFN AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY
    COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK
    MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF
    SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TRY TTD TWD TZS UAH UGX USD UYU UZS
    VES VND VUV WST XAF XAG XAU XCD XOF XPF YER ZAR ZMW
    """
"""Codes of ISO 4217, without those that are words by which many are meant ("ALL", "TOP")."""

RUN_WORDS = "execute exec run eval invoke perform"
"""In a tool's name: it does what it is given to do."""

LINK_WORDS = "url uri link site website webpage host hostname domain href endpoint webhook"
