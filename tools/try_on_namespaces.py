"""Try a run over ssh without a cluster: hosts as network namespaces of this machine.

Makes two namespaces behind a bridge, each with an sshd and a key of its own; broker and database
get the first, the sender the second, which installs this project from its wheel. Then runs
`espbench run --inventory` end to end and removes everything again. Needs root, iproute2 and
openssh-server (Debian: apt-get install openssh-server iproute2). Standard library only.

    sudo .venv/bin/python tools/try_on_namespaces.py --queries q3
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NETWORK = "10.77.0"
BRIDGE = "espbench0"
HOSTS = {"servers": f"{NETWORK}.2", "loadgen": f"{NETWORK}.3"}
SSHD = "/usr/sbin/sshd"


def main() -> None:
    """Make the hosts, run, clean up; leave with the run's exit code."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--queries", default="q3")
    options.add_argument("--duration", default="26")
    options.add_argument("--keep", action="store_true", help="leave the namespaces as they are")
    given = options.parse_args()
    refuse_where_it_cannot_work()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="espbench-ssh-")))
        work.chmod(0o755)
        if not given.keep:
            stack.callback(remove_hosts)
        remove_hosts()
        make_hosts(work, stack)
        inventory = write_inventory(work)
        wheel, wheelhouse = build_wheels(work)
        say("the hosts are ready; running over ssh")
        command = [sys.executable, "-m", "espbench", "run", "--inventory", str(inventory)]
        command += ["--wheel", str(wheel), "--wheelhouse", str(wheelhouse)]
        command += ["--queries", given.queries, "--duration", given.duration, "--warmup", "5"]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
    sys.exit(code)


def refuse_where_it_cannot_work() -> None:
    """One line for each thing that is missing."""
    if os.geteuid() != 0:
        sys.exit("only root can make network namespaces; call it with sudo")
    for program, package in ((SSHD, "openssh-server"), ("ip", "iproute2"), ("ssh", "ssh")):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing; on Debian: apt-get install {package}")


def make_hosts(work: Path, stack: ExitStack) -> None:
    """A bridge, and per host a namespace, a wire to the bridge, and an sshd."""
    keygen(work / "key")
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    # sshd's own requirement; a machine whose sshd never ran has no such directory.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    known = []
    for number, (name, address) in enumerate(HOSTS.items()):
        space, wire = namespace(name), f"espbench-v{number}"
        ip("netns", "add", space)
        ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("link", "set", wire, "master", BRIDGE, "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"]):
            ip("-n", space, *words)
        ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        known.append(f"{address} {start_sshd(work, name, address, stack)}")
    (work / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
    for address in HOSTS.values():
        wait_for_ssh(work, address)


def start_sshd(work: Path, name: str, address: str, stack: ExitStack) -> str:
    """Start one in the namespace; its public key."""
    host_key = work / f"host-{name}"
    keygen(host_key)
    config = work / f"sshd-{name}.conf"
    config.write_text(
        f"ListenAddress {address}:22\nHostKey {host_key}\nPidFile {work}/sshd-{name}.pid\n"
        f"AuthorizedKeysFile {work}/key.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n",
        encoding="utf-8",
    )
    command = ["ip", "netns", "exec", namespace(name), SSHD, "-D", "-e", "-f", str(config)]
    with (work / f"sshd-{name}.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    stack.callback(server.wait)
    stack.callback(server.terminate)
    return " ".join(Path(f"{host_key}.pub").read_text(encoding="utf-8").split()[:2])


def wait_for_ssh(work: Path, address: str) -> None:
    """Return once a command runs there."""
    deadline = time.monotonic() + 20
    while run(["ssh", *ssh_options(work), f"root@{address}", "true"], check=False).returncode:
        if time.monotonic() > deadline:
            sys.exit(f"no ssh to {address}: {(work / 'known_hosts').read_text('utf-8')}")
        time.sleep(0.2)


def ssh_options(work: Path) -> list[str]:
    """Our key, and no other; the hosts' keys, and no others."""
    key = str(work / "key")
    return ["-i", key, "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={work}/known_hosts"]


def write_inventory(work: Path) -> Path:
    """Broker and database on one host, with this Python; the sender on another, with none."""
    home = work / "hosts"
    common = f"-o UserKnownHostsFile={work}/known_hosts"
    text = f"""all:
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: {work}/key
    ansible_ssh_common_args: "{common}"
    ansible_python_interpreter: {sys.executable}
  children:
    kafka:
      hosts:
        servers:
          ansible_host: {HOSTS["servers"]}
          espbench_home: {home}/servers
          espbench_python: {sys.executable}
    database:
      hosts:
        servers:
    sender:
      hosts:
        loadgen:
          ansible_host: {HOSTS["loadgen"]}
          espbench_home: {home}/loadgen
"""
    file = work / "inventory.yml"
    file.write_text(text, encoding="utf-8")
    return file


def build_wheels(work: Path) -> tuple[Path, Path]:
    """The project's wheel, and those that the sender needs: the namespaces reach no index."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    source, wheels = work / "source", work / "wheels"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "results", "*.egg-info"))
    run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(work), str(source)])
    wheel = next(work.glob("espbench-*.whl"))
    say("fetching the wheels that the sender's host needs")
    constraints = work / "constraints.txt"
    constraints.write_text(run([*pip, "freeze", "--exclude-editable"]).stdout, encoding="utf-8")
    run([*pip, "download", "-d", str(wheels), "-c", str(constraints), f"{wheel}[kafka,datagen]"])
    return wheel, wheels


def remove_hosts() -> None:
    """Remove what we made, or what an earlier try left."""
    for number, name in enumerate(HOSTS):
        # Sessions that ssh keeps open for a while would keep the namespace.
        for pid in run(["ip", "netns", "pids", namespace(name)], check=False).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run(["ip", "link", "del", f"espbench-v{number}"], check=False)
        run(["ip", "netns", "del", namespace(name)], check=False)
    run(["ip", "link", "del", BRIDGE], check=False)


def namespace(name: str) -> str:
    """The namespace of a host."""
    return f"espbench-{name}"


def keygen(path: Path) -> None:
    """A key without a passphrase, for this try alone."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)])


def ip(*words: str) -> None:
    """One change of the network."""
    run(["ip", *words])


def run(command: list[str], *, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a program quietly; stop with its words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(f"espbench: {text}\n")


if __name__ == "__main__":
    main()
