"""Print the lines of `jars.toml` for new versions: `tools/pin_jars.py org:name:version …`.

Run with the environment's Python. Each jar is fetched once, as a run would fetch it, and its
SHA-256 printed; what else a new version depends on is for its pom to tell.
"""

import sys
import tempfile
from pathlib import Path

from espbench.config import load_settings
from espbench.services.jars import Jar, fetch_unchecked, sha256


def main() -> None:
    """Fetch and print."""
    jars = []
    for coordinate in sys.argv[1:]:
        organisation, name, version = coordinate.split(":")
        jars.append(Jar(organisation, name, version, ""))
    with tempfile.TemporaryDirectory() as directory:
        fetch_unchecked(load_settings(), Path(directory), jars)
        for jar in jars:
            checksum = sha256(Path(directory) / "jars" / jar.file_name)
            line = f'"{jar.organisation}:{jar.name}:{jar.version}" = "{checksum}"'
            sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
