"""The one seam through which work fans out over shards and models.

Today every job runs in this process, one after the other. A cluster engine takes the place of
`map_jobs`, and of nothing else: a job is a plain function of one item that writes its own result
and returns something small.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar


Item = TypeVar("Item")
Result = TypeVar("Result")


def map_jobs(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    done: Callable[[Item], bool] | None = None,
) -> list[Result]:
    """Run `function` on every item that is not done yet.

    Args:
        function: The job; it must not depend on the order of the items.
        items: What to run it on.
        done: Says whether an item was finished by an earlier, interrupted call; such an item is
            skipped and has no result here.

    Returns:
        Results in the order of the items that ran.
    """
    return [function(item) for item in items if done is None or not done(item)]
