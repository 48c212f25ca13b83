"""`espbench doctor`: whether this machine can run the benchmark."""

import sys
from dataclasses import asdict

from espbench.cli import context, options
from espbench.errors import ExitCode


def doctor(
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Check Python, Java, jars, ports, disk, clock and limits: fine, or what to do.

    Leaves with 3 where something would stop a run. Example: espbench doctor
    """
    from espbench.doctor import examine

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    findings = examine(settings)
    if json:
        context.print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            word = "fine" if finding.fine else "TO DO"
            advice = "" if finding.fine else f" -> {finding.remedy}"
            sys.stdout.write(f"{word:<6} {finding.subject:<16} {finding.text}{advice}\n")
    if not all(finding.fine for finding in findings):
        context.finish(ExitCode.SERVICE)
