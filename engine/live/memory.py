"""The few most recent results of a slow pure function."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar


Value = TypeVar("Value")


class Memory(Generic[Value]):
    """Keeps the `size` values used last; the caller guards it against threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made now unless it is still here."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = make()
        self._values[key] = value
        while len(self._values) > self._size:
            self._values.popitem(last=False)
        return value
