"""Write constraints.txt from the environment that runs this; the comment on top stays."""

import subprocess
import sys
from pathlib import Path


CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"


def main() -> None:
    """Pin every package exactly, torch without its build tag."""
    command = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    frozen = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    old = CONSTRAINTS.read_text().splitlines()
    comment = [line for line in old if line.startswith("#")]
    pins = [line.split("+")[0] for line in frozen.splitlines() if "==" in line]
    CONSTRAINTS.write_text("\n".join([*comment, *pins]) + "\n")


if __name__ == "__main__":
    main()
