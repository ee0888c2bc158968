"""The seam for fan-out."""

from engine.jobs import map_jobs


def test_jobs_run_in_order_and_skip_what_is_done():
    """A resumed stage runs only what an earlier call did not finish."""
    ran: list[int] = []

    def job(item: int) -> int:
        ran.append(item)
        return item * item

    assert map_jobs(job, range(5), done=lambda item: item in (1, 3)) == [0, 4, 16]
    assert ran == [0, 2, 4]
