"""Run a `headwater` command and leave how it ended: `python -m dashboard.background_runner END …`.

The process may have inherited an ignored Ctrl-C; here it stops the command as on a terminal.
"""

import json
import runpy
import signal
import sys
from pathlib import Path


def main() -> None:
    """Run the arguments behind the first one as the command; write its exit code to the first."""
    end = Path(sys.argv[1])
    sys.argv = ["headwater", *sys.argv[2:]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        runpy.run_module("engine", run_name="__main__", alter_sys=False)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        code = 130
    finally:
        temporary = end.with_suffix(".tmp")
        temporary.write_text(json.dumps({"code": code}), encoding="utf-8")
        temporary.replace(end)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
