"""What the reference cannot see in the source by itself: our dataclasses, and the defaults of settings."""

from typing import Any

from griffe import Attribute, Class, ExprCall, ExprName, Extension


class Ours(Extension):
    """`surefoot.types.dataclass` makes dataclasses, and `setting(50, …)` is a field whose default is 50."""

    def on_class_instance(self, *, cls: Class, **_: Any) -> None:  # Any: what griffe hands over besides
        for one in cls.decorators:
            if one.callable_path == "surefoot.types.dataclass.dataclass" and isinstance(one.value, ExprCall):
                one.value.function = ExprName("dataclasses.dataclass")

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:  # Any: the same
        while isinstance(attr.value, ExprCall) and str(attr.value.function) in ("setting", "_Unsaid"):
            attr.value = attr.value.arguments[0]
        if isinstance(attr.value, ExprCall) and str(attr.value.function) == "field":
            attr.value.function = ExprName("dataclasses.field")
