"""Programming languages by name, alias and file extension."""

from __future__ import annotations

import re
import unicodedata

_TABLE = """
python py pyi pyw python3 | javascript js mjs cjs jsx ecmascript | typescript ts mts cts tsx | rust rs | go golang
java | kotlin kt kts | swift | c h | c++ cpp cc cxx hpp hh hxx cplusplus | c# cs csharp | f# fs fsharp
objective-c objc | php | ruby rb | perl pl pm | lua | r | julia jl | scala sc | groovy gradle | clojure clj cljs
elixir ex exs | erlang erl | haskell hs | ocaml ml mli | elm | dart | zig | nim | crystal cr | d | ada adb ads
fortran f90 f95 | cobol cob | pascal pas delphi | assembly asm | solidity sol | cuda cu | verilog sv | vhdl vhd
shell sh bash zsh fish | powershell ps1 | batch bat | sql | html htm | css | scss sass | less | vue | svelte
markdown md mdx | restructuredtext rst | latex tex | json jsonc | yaml yml | toml | ini cfg | xml | csv
protobuf proto | graphql gql | terraform tf hcl | dockerfile docker | makefile make mk | cmake | nix
"""
"""A row is a name and what else it goes by. Rows end at a bar or a line's end."""

_NAMES = {alias: row.split()[0] for row in re.split(r"[|\n]", _TABLE) if row.strip() for alias in row.split()}
_OF_FILES = {*_NAMES, "txt", "log", "lock", "env", "conf", "properties", "svg", "png", "jpg", "pdf"} - {"d", "r"}
_FILLER = re.compile(
    r"(?<![^\s_-])(?:coding|code|style|conventions?|guidelines?|rules?|language|the|for)(?![^\s_-])"
    r"|编码|编程|代码|语言|规范|约定|风格|惯例|的"
)
"""What a question for the conventions of a language may say besides its name."""


def language_named(text: str) -> str | None:
    """The language that a text names, by its usual name; None when it names none that is known, or more than that."""
    return _NAMES.get(plain(text))


def plain(text: str) -> str:
    """A language as it is stored and compared: lower case, without `*.` and without words such as "conventions"."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    rest = " ".join(_FILLER.sub(" ", folded).split()) or " ".join(folded.split())
    return rest.removeprefix("*").removeprefix(".")


def stored_language(text: str) -> str:
    """A language as an entry carries it: its usual name if it has one; "" for none."""
    return language_named(text) or plain(text)


def looks_like_a_file(name: str) -> bool:
    """Whether the name of something that is not there (yet) is a file's, by its extension."""
    stem, dot, extension = name.rpartition(".")
    return bool(stem and dot) and extension.casefold() in _OF_FILES
