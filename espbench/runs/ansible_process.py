"""The process in which ansible-runner works: events as JSON lines on standard output.

Apart from the run's own process, so that Ansible can clean up even after a run that was killed:
ansible-runner holds Ansible's terminal, and Ansible ends when that is gone. Started by
`espbench.runs.ansible` with its order as JSON on standard input.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

END = "espbench-end"
_SETTINGS = {"pexpect_timeout": 1}


def main() -> None:
    """Read the order, run the playbook, tell its events and at last its exit code."""
    order = json.load(sys.stdin)
    import ansible_runner  # noqa: PLC0415 - after the order, which says where its files go

    artifacts = Path(order["private"]) / "artifacts/run"

    def forget_environment(_status: dict[str, Any], **_: Any) -> None:
        # ansible-runner writes the whole environment down, where nobody needs it.
        (artifacts / "command").unlink(missing_ok=True)

    runner = ansible_runner.run(
        private_data_dir=order["private"],
        # Steps run where the user called us, as paths in options are meant.
        project_dir=str(Path.cwd()),
        binary=order["binary"],
        cmdline=order["cmdline"],
        ident="run",
        quiet=True,
        settings=_SETTINGS,
        suppress_env_files=True,
        event_handler=_tell,
        status_handler=forget_environment,
    )
    with Path(order["log"]).open("a", encoding="utf-8") as log:
        log.write((artifacts / "stdout").read_text(encoding="utf-8"))
    # Here as well as in the run's process, which may be gone.
    shutil.rmtree(order["private"], ignore_errors=True)
    _tell({END: runner.rc})


def _tell(event: dict[str, Any]) -> bool:
    try:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody listens any more; Ansible goes on to clean up.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    # Not to be written as a file.
    return False


if __name__ == "__main__":
    main()
