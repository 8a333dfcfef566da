"""Which call mode a model is spoken to in, given what is known about it. Source: spec/react.md, section 2."""

from surefoot.types.messages import CallMode, Traits


def mode_for(start: CallMode, traits: Traits) -> CallMode:
    """The mode to use. A mode that the endpoint cannot carry, or that the model does not master, gives way to the next.

    The order is native, schema, text; `start` is where it begins. "schema" is only chosen where the trait
    `json_schema` is known to be "yes", or where it was started with.
    """
    schema = traits.get("json_schema")
    if start == "native" and traits.get("native_tools") not in ("no", "weak", "mute"):
        return "native"
    if start == "text" and traits.get("text_steps") != "weak":
        return "text"
    if schema == "yes" or (start == "schema" and schema != "no"):
        return "schema"
    return "text"
