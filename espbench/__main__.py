"""`python -m espbench` is the `espbench` command."""

from espbench.cli import main

main()
